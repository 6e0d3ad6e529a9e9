-- Up to ?2 leases that the reaper may take, after the id ?3, of the streams in the JSON array ?4 or of all. The table holds
-- only what runs now, so this reads all of it.
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key
FROM leases
WHERE expires_at <= ?1 AND attempt_id IS NOT NULL AND (?3 IS NULL OR resource_id > ?3)
  AND (?4 IS NULL OR stream IN (SELECT value FROM json_each(?4)))
ORDER BY resource_id
LIMIT ?2
