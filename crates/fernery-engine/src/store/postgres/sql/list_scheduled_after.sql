-- Scheduled jobs by id, after $1.
SELECT s.*
FROM (
    SELECT job_id FROM fernery.scheduled WHERE $1::uuid IS NULL OR job_id > $1 ORDER BY job_id LIMIT $2
) c
CROSS JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE job_id = c.job_id LIMIT 1) s
ORDER BY c.job_id;
