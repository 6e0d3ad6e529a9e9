-- How one attempt was closed.
SELECT token_hash, outcome, status FROM attempts WHERE job_id = ?1 AND attempt_id = ?2
