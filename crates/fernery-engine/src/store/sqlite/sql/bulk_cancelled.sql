-- Cancelled jobs by id, after ?1, and when they ended.
SELECT job_id, stream, ended_at AS at
FROM jobs
WHERE ended = 'CANCELLED' AND job_id > ?1
ORDER BY job_id
LIMIT ?2
