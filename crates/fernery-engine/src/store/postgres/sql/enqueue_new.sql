-- Stores jobs whose ids nobody else can have and that have no unique key: all of them, each with its place in line.
-- The common case, and apart for its speed: without ON CONFLICT an insert costs half.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), asked AS MATERIALIZED (
    SELECT nextval('fernery.places') AS seq, i.*,
           CASE WHEN i.delay_ms IS NOT NULL THEN clock.now + i.delay_ms * interval '1 millisecond'
                ELSE coalesce(i.start_at, clock.now)
           END AS run_at,
           clock.now
    FROM clock, unnest($1::uuid[], $2::text[], $3::json[], $4::integer[], $5::bigint[], $6::text[], $7::bigint[],
                       $8::timestamptz[])
         AS i(job_id, stream, payload, max_attempts, timeout_ms, producer, delay_ms, start_at)
), stored AS (
    INSERT INTO fernery.jobs (job_id, stream, payload, max_attempts, timeout_ms, producer, created_at, run_at, seq,
                              claim_version)
    SELECT job_id, stream, payload, max_attempts, timeout_ms, producer, now, run_at, seq, 0 FROM asked
), claimable AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT stream, seq, job_id, now, 0, 0, 0, 0, 0 FROM asked WHERE run_at <= now
), later AS (
    INSERT INTO fernery.scheduled (job_id, stream, seq, due_at, claim_version, attempt_no, failed, lost, released)
    SELECT job_id, stream, seq, run_at, 0, 0, 0, 0, 0 FROM asked WHERE run_at > now
), emitted AS (
    INSERT INTO fernery.outbox (stream, job_ids, places, versions)
    SELECT stream, array_agg(job_id), array_agg(seq), array_agg(0::bigint)
    FROM asked WHERE current_setting('fernery.transport', true) = 'on' AND run_at <= now GROUP BY stream
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, scheduled)
    SELECT stream, count(*) FILTER (WHERE run_at <= now), count(*) FILTER (WHERE run_at > now)
    FROM asked GROUP BY stream
)
SELECT now FROM clock;
