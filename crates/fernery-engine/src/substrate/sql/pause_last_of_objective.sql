SELECT document FROM pauses WHERE objective_id = $1 AND azolla_id = $2 ORDER BY created_at DESC, pause_key DESC LIMIT 1;
