-- Closes an attempt. The primary key refuses a second closing row.
INSERT INTO attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at, outcome, status,
                      claim_version, result, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
