-- The closed attempts of a job, oldest first.
SELECT attempt_id, attempt_no, worker_id, started_at, finished_at, outcome, error, result, claim_version
FROM fernery.attempts WHERE job_id = $1 ORDER BY attempt_no;
