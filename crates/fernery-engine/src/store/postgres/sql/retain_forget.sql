-- Deletes finished jobs with all their history, if they are still finished that long: one that an operator starts over at
-- the same moment stays.
WITH cutoff AS MATERIALIZED (
    SELECT fernery.fernery_now() - $2::bigint * interval '1 millisecond' AS finished,
           fernery.fernery_now() - $3::bigint * interval '1 millisecond' AS dead
), locked AS MATERIALIZED (
    SELECT job_id, stream, ended, ended_at FROM fernery.jobs
    WHERE job_id = ANY ($1::uuid[])
    ORDER BY job_id
    FOR UPDATE SKIP LOCKED
), old AS MATERIALIZED (
    SELECT l.job_id, l.stream, l.ended
    FROM locked l
    LEFT JOIN LATERAL (
        SELECT outcome, finished_at FROM fernery.attempts WHERE job_id = l.job_id ORDER BY attempt_no DESC LIMIT 1
    ) a ON true
    WHERE CASE WHEN l.ended IS NOT NULL THEN l.ended_at
               WHEN a.outcome = 'SUCCEEDED' THEN a.finished_at
          END < (SELECT CASE WHEN l.ended = 'DEAD' THEN dead ELSE finished END FROM cutoff)
), no_letter AS (
    DELETE FROM fernery.dead_letters WHERE job_id = ANY (ARRAY(SELECT job_id FROM old WHERE ended = 'DEAD'))
), no_attempts AS (
    DELETE FROM fernery.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM old))
), no_jobs AS (
    DELETE FROM fernery.jobs WHERE job_id = ANY (ARRAY(SELECT job_id FROM old))
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, dead)
    SELECT stream, -count(*) FROM old WHERE ended = 'DEAD' GROUP BY stream
)
SELECT count(*) FROM old;
