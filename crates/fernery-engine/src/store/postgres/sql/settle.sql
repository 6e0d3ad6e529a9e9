-- Applies decisions over ended attempts: closes the attempt, frees the lease, and queues, schedules, cancels or buries the
-- job. Only where the version is still the one that was read and decided upon.
WITH decided AS MATERIALIZED (
    SELECT nextval('fernery.places') AS place, d.*
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::json[], $6::timestamptz[], $7::integer[],
                $8::integer[], $9::integer[], $10::text[], $11::text[], $12::timestamptz[])
         AS d(job_id, version, outcome, status, error, due_at, failed, lost, released, reason, code, now)
), held AS MATERIALIZED (
    SELECT l.resource_id AS job_id, l.attempt_id, l.token_hash, l.owner_id, l.stream, l.started_at,
           l.claim_version + 1 AS claim_version, l.attempt_no, l.unique_key, l.message_ms, l.message_n,
           d.place, d.outcome, d.status, d.error, d.due_at, d.failed, d.lost, d.released, d.reason, d.code, d.now
    FROM decided d
    CROSS JOIN LATERAL (
        SELECT * FROM fernery.leases
        WHERE resource_id = d.job_id AND claim_version = d.version
        LIMIT 1 FOR UPDATE
    ) l
), gone AS (
    DELETE FROM fernery.leases WHERE resource_id = ANY (ARRAY(SELECT job_id FROM held))
), closed AS (
    INSERT INTO fernery.attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at,
                                  outcome, status, claim_version, error)
    SELECT job_id, attempt_no, attempt_id, token_hash, owner_id, started_at, now, outcome, status, claim_version, error
    FROM held
), claimable AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT stream, place, job_id, now, claim_version, attempt_no, failed, lost, released
    FROM held WHERE status = 'QUEUED' AND due_at IS NULL
), later AS (
    INSERT INTO fernery.scheduled (job_id, stream, seq, due_at, claim_version, attempt_no, failed, lost, released)
    SELECT job_id, stream, place, due_at, claim_version, attempt_no, failed, lost, released
    FROM held WHERE status = 'QUEUED' AND due_at IS NOT NULL
), marked AS (
    UPDATE fernery.jobs j
    SET seq = CASE WHEN h.status = 'QUEUED' THEN h.place ELSE j.seq END,
        ended = CASE WHEN h.status <> 'QUEUED' THEN h.status END,
        ended_at = CASE WHEN h.status <> 'QUEUED' THEN h.now END,
        claim_version = CASE WHEN h.status <> 'QUEUED' THEN h.claim_version ELSE j.claim_version END
    FROM held h
    WHERE j.job_id = h.job_id
), freed AS (
    DELETE FROM fernery.unique_keys
    WHERE key = ANY (ARRAY(SELECT unique_key FROM held WHERE status <> 'QUEUED' AND unique_key IS NOT NULL))
      AND job_id = ANY (ARRAY(SELECT job_id FROM held WHERE status <> 'QUEUED' AND unique_key IS NOT NULL))
), buried AS (
    INSERT INTO fernery.dead_letters (job_id, stream, buried_at, reason, code)
    SELECT job_id, stream, now, reason, code FROM held WHERE reason IS NOT NULL
), emitted AS (
    INSERT INTO fernery.outbox (stream, job_ids, places, versions)
    SELECT stream, array_agg(job_id), array_agg(place), array_agg(claim_version)
    FROM held WHERE current_setting('fernery.transport', true) = 'on' AND status = 'QUEUED' AND due_at IS NULL GROUP BY stream
    UNION ALL
    SELECT 'jobs:dlq', array_agg(job_id), array_agg(place), array_agg(claim_version)
    FROM held WHERE current_setting('fernery.transport', true) = 'on' AND reason IS NOT NULL
    HAVING count(*) > 0
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, running, ready, scheduled, dead, cancelled)
    SELECT stream, -count(*),
           count(*) FILTER (WHERE status = 'QUEUED' AND due_at IS NULL),
           count(*) FILTER (WHERE status = 'QUEUED' AND due_at IS NOT NULL),
           count(*) FILTER (WHERE status = 'DEAD'),
           count(*) FILTER (WHERE status = 'CANCELLED')
    FROM held GROUP BY stream
)
SELECT stream, message_ms, message_n FROM held;
