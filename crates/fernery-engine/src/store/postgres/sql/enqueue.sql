-- Stores jobs, each with its place in line and, if it has one, its unique key; all in this one statement.
-- A job whose key or id is taken is left out. Nothing of it is written, except where the key was free and the id was not:
-- the caller sees it by the number of keys in the last column and rolls back.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), asked AS MATERIALIZED (
    SELECT nextval('fernery.places') AS seq, i.*,
           CASE WHEN i.delay_ms IS NOT NULL THEN clock.now + i.delay_ms * interval '1 millisecond'
                ELSE coalesce(i.start_at, clock.now)
           END AS run_at,
           clock.now
    FROM clock, unnest($1::uuid[], $2::text[], $3::json[], $4::integer[], $5::bigint[], $6::text[], $7::text[],
                       $8::bytea[], $9::bigint[], $10::timestamptz[])
         AS i(job_id, stream, payload, max_attempts, timeout_ms, unique_key, producer, content_hash, delay_ms, start_at)
), keyed AS (
    INSERT INTO fernery.unique_keys (key, job_id)
    SELECT unique_key, job_id FROM asked WHERE unique_key IS NOT NULL ORDER BY unique_key
    ON CONFLICT (key) DO NOTHING
    RETURNING job_id
), stored AS (
    INSERT INTO fernery.jobs (job_id, stream, payload, max_attempts, timeout_ms, unique_key, producer, content_hash,
                              created_at, run_at, seq, claim_version)
    SELECT job_id, stream, payload, max_attempts, timeout_ms, unique_key, producer, content_hash, now, run_at, seq, 0
    FROM asked
    WHERE unique_key IS NULL OR job_id IN (SELECT job_id FROM keyed)
    -- In the order of ids: two batches with the same ids then wait for each other instead of deadlocking.
    ORDER BY job_id
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id, stream, seq, created_at, run_at
), claimable AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT stream, seq, job_id, created_at, 0, 0, 0, 0, 0 FROM stored WHERE run_at <= created_at
), later AS (
    INSERT INTO fernery.scheduled (job_id, stream, seq, due_at, claim_version, attempt_no, failed, lost, released)
    SELECT job_id, stream, seq, run_at, 0, 0, 0, 0, 0 FROM stored WHERE run_at > created_at
), emitted AS (
    INSERT INTO fernery.outbox (stream, job_ids, places, versions)
    SELECT stream, array_agg(job_id), array_agg(seq), array_agg(0::bigint)
    FROM stored WHERE current_setting('fernery.transport', true) = 'on' AND run_at <= created_at GROUP BY stream
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, scheduled)
    SELECT stream, count(*) FILTER (WHERE run_at <= created_at), count(*) FILTER (WHERE run_at > created_at)
    FROM stored GROUP BY stream
)
SELECT job_id, created_at, run_at, (SELECT count(*) FROM keyed) FROM stored;
