-- Dead jobs from $1 down, newest id first, and where they stand.
SELECT s.*
FROM (SELECT job_id AS job_id FROM fernery.dead_letters WHERE job_id <= $1 ORDER BY job_id DESC LIMIT $2) c
CROSS JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE job_id = c.job_id LIMIT 1) s
ORDER BY c.job_id DESC;
