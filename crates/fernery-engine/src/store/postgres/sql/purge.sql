-- Deletes dead jobs that match with all their history, oldest id first. The job's row is locked first, as by whoever
-- starts it over, and what somebody else has in hand is left to them.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
WITH picked AS MATERIALIZED (
    SELECT d.job_id, d.stream
    FROM fernery.dead_letters d
    JOIN fernery.jobs j ON j.job_id = d.job_id AND j.ended = 'DEAD'
    WHERE d.stream NOT LIKE 'diazotroph:%' AND ($1::text IS NULL OR d.stream = $1) AND ($2::text IS NULL OR d.code = $2)
      AND ($3::timestamptz IS NULL OR d.buried_at < $3) AND ($4::uuid[] IS NULL OR d.job_id = ANY ($4))
    ORDER BY d.job_id
    LIMIT $5
    FOR UPDATE OF j SKIP LOCKED
), no_letter AS (
    DELETE FROM fernery.dead_letters WHERE job_id = ANY (ARRAY(SELECT job_id FROM picked))
), no_attempts AS (
    DELETE FROM fernery.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM picked))
), no_jobs AS (
    DELETE FROM fernery.jobs WHERE job_id = ANY (ARRAY(SELECT job_id FROM picked))
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, dead)
    SELECT stream, -count(*) FROM picked GROUP BY stream
)
SELECT count(*) FROM picked;
