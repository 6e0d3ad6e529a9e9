SELECT document FROM pauses WHERE objective_id = $1 ORDER BY created_at, pause_key;
