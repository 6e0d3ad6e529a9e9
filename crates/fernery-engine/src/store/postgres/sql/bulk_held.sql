-- Running jobs that nobody has asked to end, by id, after $1, and when their attempts began.
SELECT resource_id AS job_id, stream, started_at AS at
FROM fernery.leases
WHERE resource_id > $1 AND attempt_id IS NOT NULL AND NOT cancel_requested
ORDER BY resource_id
LIMIT $2;
