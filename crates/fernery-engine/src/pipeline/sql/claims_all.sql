-- Claims of polling workers, expired ones too, up to $1 of them.
SELECT resource_type, resource_id, owner_id, lease_expires_at, heartbeat_at, claim_version FROM claims
ORDER BY resource_type, resource_id
LIMIT $1;
