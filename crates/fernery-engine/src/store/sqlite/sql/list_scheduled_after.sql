-- Scheduled jobs by id.
SELECT job_id FROM scheduled WHERE ?1 IS NULL OR job_id > ?1 ORDER BY job_id LIMIT ?2
