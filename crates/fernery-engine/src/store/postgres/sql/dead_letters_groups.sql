-- Dead jobs by stream and error code, of the $1 newest deaths, of one stream if $3 names it: the cost is the same however many are dead. The group with the
-- newest death first; each with its newest job and the error of that.
WITH newest AS (
    SELECT * FROM (
        SELECT job_id, stream, buried_at, reason, code
        FROM fernery.dead_letters
        WHERE $3::text IS NULL
        ORDER BY buried_at DESC, job_id DESC
        LIMIT $1
    ) of_all
    UNION ALL
    SELECT * FROM (
        SELECT job_id, stream, buried_at, reason, code
        FROM fernery.dead_letters
        WHERE stream = $3
        ORDER BY buried_at DESC, job_id DESC
        LIMIT $1
    ) of_stream
), ranked AS (
    SELECT job_id, stream, buried_at, reason, code,
           count(*) OVER (PARTITION BY stream, code) AS jobs,
           min(buried_at) OVER (PARTITION BY stream, code) AS oldest_at,
           row_number() OVER (PARTITION BY stream, code ORDER BY buried_at DESC, job_id DESC) AS place
    FROM newest
)
SELECT r.job_id, r.stream, r.buried_at, r.reason, r.code, r.jobs, r.oldest_at,
       (SELECT a.error::text FROM fernery.attempts a WHERE a.job_id = r.job_id ORDER BY a.attempt_no DESC LIMIT 1) AS error,
       (SELECT count(*) FROM newest) AS looked_at
FROM ranked r
WHERE r.place = 1
ORDER BY r.buried_at DESC, r.job_id DESC
LIMIT $2;
