-- All jobs from $1 down, newest id first, and where those stand that may be meant: of the stream $3 if it is given, and not ended as
-- DEAD or CANCELLED unless $4.
SELECT s.*, c.job_id AS candidate
FROM (
    SELECT job_id, ($3::text IS NULL OR stream = $3) AND ($4::boolean OR ended IS NULL) AS meant
    FROM fernery.jobs WHERE job_id <= $1 ORDER BY job_id DESC LIMIT $2
) c
LEFT JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE c.meant AND job_id = c.job_id LIMIT 1) s ON true
ORDER BY c.job_id DESC;
