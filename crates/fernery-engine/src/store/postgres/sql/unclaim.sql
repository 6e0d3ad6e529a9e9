-- Puts jobs back whose claimer left before it was told: as if never claimed, but for the version. Only under the token of
-- that very claim; one whose cancel was asked for meanwhile stays until its lease runs out, and ends then.
WITH proven AS MATERIALIZED (
    SELECT l.*
    FROM unnest($1::uuid[], $2::bytea[]) AS i(job_id, token_hash)
    CROSS JOIN LATERAL (
        SELECT * FROM fernery.leases
        WHERE resource_id = i.job_id AND token_hash = i.token_hash AND NOT cancel_requested
        LIMIT 1 FOR UPDATE
    ) l
), gone AS (
    DELETE FROM fernery.leases WHERE resource_id = ANY (ARRAY(SELECT resource_id FROM proven))
), back AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT stream, seq, resource_id, ready_at, claim_version + 1, attempt_no - 1, failed, lost, released FROM proven
), emitted AS (
    INSERT INTO fernery.outbox (stream, job_ids, places, versions)
    SELECT stream, array_agg(resource_id), array_agg(seq), array_agg(claim_version + 1)
    FROM proven WHERE current_setting('fernery.transport', true) = 'on' GROUP BY stream
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, running)
    SELECT stream, count(*), -count(*) FROM proven GROUP BY stream
)
SELECT stream, message_ms, message_n FROM proven;
