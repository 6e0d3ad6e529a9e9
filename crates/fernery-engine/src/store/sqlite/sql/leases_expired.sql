-- Leases that the reaper may take. The table holds only what runs now, so this reads all of it.
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key
FROM leases
WHERE expires_at <= ?1 AND attempt_id IS NOT NULL
LIMIT ?2
