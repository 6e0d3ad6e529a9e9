-- Dead jobs by stream and error code, of the $1 newest deaths, those of one stream if $3 names it: the cost is the same however
-- many are dead. The group with the newest death first; each with its newest job, the error of that, and when each of its jobs died.
WITH newest AS MATERIALIZED (
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
), counted AS (
    SELECT stream, code, count(*) AS jobs, min(buried_at) AS oldest_at,
           array_agg((extract(epoch FROM buried_at) * 1000)::bigint) AS died_at
    FROM newest
    GROUP BY stream, code
), ranked AS (
    SELECT job_id, stream, buried_at, reason, code,
           row_number() OVER (PARTITION BY stream, code ORDER BY buried_at DESC, job_id DESC) AS place
    FROM newest
)
SELECT r.job_id, r.stream, r.buried_at, r.reason, r.code, c.jobs, c.oldest_at, c.died_at,
       (SELECT a.error::text FROM fernery.attempts a WHERE a.job_id = r.job_id ORDER BY a.attempt_no DESC LIMIT 1) AS error,
       (SELECT count(*) FROM newest) AS looked_at, (SELECT min(buried_at) FROM newest) AS looked_from
FROM ranked r
JOIN counted c ON c.stream = r.stream AND c.code = r.code
WHERE r.place = 1
ORDER BY r.buried_at DESC, r.job_id DESC
LIMIT $2;
