-- Makes up to $1 scheduled jobs whose time has come claimable, behind all that wait already.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), due AS MATERIALIZED (
    SELECT job_id FROM fernery.scheduled
    WHERE due_at <= (SELECT now FROM clock)
    ORDER BY due_at, seq LIMIT $1
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM fernery.scheduled WHERE job_id = ANY (ARRAY(SELECT job_id FROM due)) RETURNING *
), placed AS MATERIALIZED (
    SELECT o.*, nextval('fernery.places') AS place FROM (SELECT * FROM gone ORDER BY due_at, seq) o
), told AS (
    UPDATE fernery.jobs j SET seq = p.place FROM placed p WHERE j.job_id = p.job_id
), claimable AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT p.stream, p.place, p.job_id, clock.now, p.claim_version, p.attempt_no, p.failed, p.lost, p.released
    FROM placed p, clock
), emitted AS (
    INSERT INTO fernery.outbox (stream, job_ids, places, versions)
    SELECT stream, array_agg(job_id), array_agg(place), array_agg(claim_version)
    FROM placed WHERE current_setting('fernery.transport', true) = 'on' GROUP BY stream
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, scheduled)
    SELECT stream, count(*), -count(*) FROM gone GROUP BY stream
)
SELECT stream FROM gone;
