-- Creates a claim, or takes over an expired one; no row if somebody else holds it.
INSERT INTO claims (resource_type, resource_id, owner_id, lease_expires_at, heartbeat_at, claim_version)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (resource_type, resource_id) DO UPDATE
SET owner_id = $3, lease_expires_at = $4, heartbeat_at = $5, claim_version = $6
WHERE claims.lease_expires_at <= $5 AND claims.claim_version < $6
RETURNING claim_version;
