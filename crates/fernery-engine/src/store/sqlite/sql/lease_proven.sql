-- The lease of whoever proves to hold it: job, attempt and token.
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key
FROM leases
WHERE resource_id = ?1 AND attempt_id = ?2 AND token_hash = ?3
