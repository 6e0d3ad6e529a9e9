-- Compare and swap on the version that the holder read.
UPDATE claims SET lease_expires_at = $5, heartbeat_at = $6, claim_version = $4 + 1
WHERE resource_type = $1 AND resource_id = $2 AND owner_id = $3 AND claim_version = $4
RETURNING claim_version;
