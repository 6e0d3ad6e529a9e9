-- A page of run records of all azollas, newest first, below the place ($1, $2).
SELECT document, evidence FROM runs WHERE (created_at, run_id) < ($1, $2)
ORDER BY created_at DESC, run_id DESC
LIMIT $3;
