-- Lets a job wait for its time; it keeps its place.
INSERT INTO scheduled (stream, seq, job_id, due_at, claim_version, attempt_no, failed, lost, released)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
