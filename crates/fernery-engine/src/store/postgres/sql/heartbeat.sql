-- Renews the leases whose token is given, and no others. A lease never reaches past its time-out.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
)
UPDATE fernery.leases l
SET heartbeat_at = clock.now,
    expires_at = least(clock.now + $3::bigint * interval '1 millisecond', l.timeout_at),
    claim_version = l.claim_version + 1
FROM clock, unnest($1::uuid[], $2::bytea[]) AS i(job_id, token_hash)
WHERE l.resource_id = ANY ($1::uuid[]) AND l.resource_id = i.job_id AND l.token_hash = i.token_hash
RETURNING l.resource_id, l.expires_at, l.cancel_requested, l.token_hash;
