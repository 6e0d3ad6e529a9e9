-- Running jobs that nobody has asked to end, by id, after ?1, and when they were enqueued.
SELECT l.resource_id AS job_id, l.stream, j.created_at AS at
FROM leases l CROSS JOIN jobs j ON j.job_id = l.resource_id
WHERE l.resource_id > ?1 AND l.attempt_id IS NOT NULL AND NOT l.cancel_requested
ORDER BY l.resource_id
LIMIT ?2
