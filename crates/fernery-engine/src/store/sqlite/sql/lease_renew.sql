-- Extends a lease for whoever proves to hold it, never past the attempt's time-out.
UPDATE leases
SET heartbeat_at = ?3, expires_at = min(?4, coalesce(timeout_at, ?4)), claim_version = claim_version + 1
WHERE resource_id = ?1 AND token_hash = ?2
