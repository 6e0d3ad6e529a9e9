-- Starts jobs over that ended DEAD or CANCELLED: a new place in line, counts from zero, history and version go on. A job
-- whose unique key is taken stays as it is; of two with the same key the one with the smaller id goes.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), ended AS MATERIALIZED (
    SELECT job_id, stream, unique_key, ended, claim_version FROM fernery.jobs
    WHERE job_id = ANY ($1::uuid[]) AND ended IS NOT NULL
    ORDER BY job_id
    FOR UPDATE
), keyed AS (
    INSERT INTO fernery.unique_keys (key, job_id)
    SELECT unique_key, job_id FROM ended WHERE unique_key IS NOT NULL ORDER BY unique_key, job_id
    ON CONFLICT (key) DO NOTHING
    RETURNING job_id
), going AS MATERIALIZED (
    SELECT e.*, nextval('fernery.places') AS place, coalesce(a.attempt_no, 0) AS attempt_no,
           greatest(e.claim_version, coalesce(a.claim_version, 0)) + 1 AS next_version
    FROM ended e
    LEFT JOIN LATERAL (
        SELECT attempt_no, claim_version FROM fernery.attempts
        WHERE job_id = e.job_id ORDER BY attempt_no DESC LIMIT 1
    ) a ON true
    WHERE e.unique_key IS NULL OR e.job_id IN (SELECT job_id FROM keyed)
), back AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT g.stream, g.place, g.job_id, clock.now, g.next_version, g.attempt_no, 0, 0, 0 FROM going g, clock
), marked AS (
    UPDATE fernery.jobs j
    SET ended = NULL, ended_at = NULL, seq = g.place, claim_version = g.next_version
    FROM going g
    WHERE j.job_id = g.job_id
), raised AS (
    DELETE FROM fernery.dead_letters WHERE job_id = ANY (ARRAY(SELECT job_id FROM going WHERE ended = 'DEAD'))
), emitted AS (
    INSERT INTO fernery.outbox (stream, job_ids, places, versions)
    SELECT stream, array_agg(job_id), array_agg(place), array_agg(next_version)
    FROM going WHERE current_setting('fernery.transport', true) = 'on' GROUP BY stream
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, dead, cancelled)
    SELECT stream, count(*), -count(*) FILTER (WHERE ended = 'DEAD'), -count(*) FILTER (WHERE ended = 'CANCELLED')
    FROM going GROUP BY stream
)
SELECT stream FROM going;
