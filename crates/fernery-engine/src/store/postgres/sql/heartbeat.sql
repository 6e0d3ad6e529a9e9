-- Renews the leases whose token is given, and no others. A lease never reaches past its time-out. Items come sorted by
-- job, so that batches lock in the same order.
WITH proven AS MATERIALIZED (
    SELECT l.resource_id
    FROM unnest($1::uuid[], $2::bytea[]) AS i(job_id, token_hash)
    CROSS JOIN LATERAL (
        SELECT resource_id FROM fernery.leases
        WHERE resource_id = i.job_id AND token_hash = i.token_hash
        LIMIT 1 FOR UPDATE
    ) l
), clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
)
UPDATE fernery.leases l
SET heartbeat_at = clock.now,
    expires_at = least(clock.now + $3::bigint * interval '1 millisecond', l.timeout_at),
    claim_version = l.claim_version + 1
FROM clock
WHERE l.resource_id = ANY (ARRAY(SELECT resource_id FROM proven))
RETURNING l.resource_id, l.expires_at, l.cancel_requested, l.token_hash;
