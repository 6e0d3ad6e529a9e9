-- Leases of jobs, oldest job first, after $1.
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key
FROM fernery.leases
WHERE resource_id > $1 AND attempt_id IS NOT NULL
ORDER BY resource_id
LIMIT $2;
