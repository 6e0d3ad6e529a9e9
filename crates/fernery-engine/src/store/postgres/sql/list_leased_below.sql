-- Running jobs from $1 down, newest id first, and where those stand that may be meant: of the stream $3 if it is given.
SELECT s.*, c.job_id AS candidate
FROM (
    SELECT resource_id AS job_id, $3::text IS NULL OR stream = $3 AS meant
    FROM fernery.leases WHERE resource_id <= $1 ORDER BY resource_id DESC LIMIT $2
) c
LEFT JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE c.meant AND job_id = c.job_id LIMIT 1) s ON true
ORDER BY c.job_id DESC;
