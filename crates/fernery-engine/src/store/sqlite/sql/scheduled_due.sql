-- Scheduled jobs whose time has come, the longest due first.
SELECT job_id, stream, claim_version, attempt_no, failed, lost, released
FROM scheduled
WHERE due_at <= ?1
ORDER BY due_at, seq
LIMIT ?2
