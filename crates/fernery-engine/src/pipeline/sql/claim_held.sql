-- Whether somebody holds a resource after $3.
SELECT 1 FROM claims WHERE resource_type = $1 AND resource_id = $2 AND lease_expires_at > $3;
