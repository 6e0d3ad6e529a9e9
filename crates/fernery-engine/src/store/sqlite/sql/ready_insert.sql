-- Makes a job claimable at its place.
INSERT INTO ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
