SELECT document, evidence FROM runs WHERE (created_at, run_id) < ($1, $2)
ORDER BY created_at DESC, run_id DESC
LIMIT $3;
