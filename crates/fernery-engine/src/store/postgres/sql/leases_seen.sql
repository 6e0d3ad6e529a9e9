-- Reads leases without touching them.
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key,
       percent, note
FROM fernery.leases
WHERE resource_id = ANY ($1::uuid[]) AND attempt_id IS NOT NULL;
