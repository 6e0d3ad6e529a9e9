-- Makes up to $1 scheduled jobs whose time has come claimable, at the place in line that they had from the start.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), due AS MATERIALIZED (
    SELECT job_id FROM fernery.scheduled
    WHERE due_at <= (SELECT now FROM clock)
    ORDER BY due_at, seq LIMIT $1
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM fernery.scheduled WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) RETURNING *
), claimable AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT g.stream, g.seq, g.job_id, clock.now, g.claim_version, g.attempt_no, g.failed, g.lost, g.released
    FROM gone g, clock
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, scheduled)
    SELECT stream, count(*), -count(*) FROM gone GROUP BY stream
)
SELECT stream FROM gone;
