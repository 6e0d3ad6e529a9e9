-- Scheduled jobs by id.
SELECT job_id FROM scheduled WHERE job_id > ?1 ORDER BY job_id LIMIT ?2
