-- Renews a claim; no row unless owner and version are those of the claim.
UPDATE claims SET lease_expires_at = $5, heartbeat_at = $6, claim_version = $4 + 1
WHERE resource_type = $1 AND resource_id = $2 AND owner_id = $3 AND claim_version = $4
RETURNING claim_version;
