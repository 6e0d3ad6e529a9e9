-- Scheduled jobs by id, after $1, and when they were enqueued.
SELECT s.job_id, s.stream, j.created_at AS at
FROM (SELECT job_id, stream FROM fernery.scheduled WHERE job_id > $1 ORDER BY job_id LIMIT $2) s
CROSS JOIN LATERAL (SELECT created_at FROM fernery.jobs WHERE job_id = s.job_id LIMIT 1) j
ORDER BY s.job_id;
