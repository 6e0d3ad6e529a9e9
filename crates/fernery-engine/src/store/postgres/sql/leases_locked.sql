-- Reads leases and locks them, in the order of their ids; with the instant after the last lock was had.
WITH locked AS MATERIALIZED (
    SELECT * FROM fernery.leases
    WHERE resource_id = ANY ($1::uuid[]) AND attempt_id IS NOT NULL
    ORDER BY resource_id
    FOR UPDATE
)
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key,
       fernery.fernery_now()
FROM locked;
