-- Scheduled jobs by id, after ?1, and when they were enqueued.
SELECT s.job_id, s.stream, j.created_at AS at
FROM scheduled s CROSS JOIN jobs j ON j.job_id = s.job_id
WHERE s.job_id > ?1
ORDER BY s.job_id
LIMIT ?2
