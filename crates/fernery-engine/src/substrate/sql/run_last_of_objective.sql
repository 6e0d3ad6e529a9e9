SELECT document, evidence FROM runs WHERE objective_id = $1 ORDER BY created_at DESC LIMIT 1;
