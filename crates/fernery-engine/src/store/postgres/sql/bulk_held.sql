-- Running jobs that nobody has asked to end, by id, after $1, and when they were enqueued.
SELECT l.job_id, l.stream, j.created_at AS at
FROM (
    SELECT resource_id AS job_id, stream FROM fernery.leases
    WHERE resource_id > $1 AND attempt_id IS NOT NULL AND NOT cancel_requested
    ORDER BY resource_id LIMIT $2
) l
CROSS JOIN LATERAL (SELECT created_at FROM fernery.jobs WHERE job_id = l.job_id LIMIT 1) j
ORDER BY l.job_id;
