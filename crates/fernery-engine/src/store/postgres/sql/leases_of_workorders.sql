-- Leases of the pipeline's streams, oldest job first. `;` is the character after `:`.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
SELECT resource_id, owner_id, expires_at, heartbeat_at, claim_version
FROM fernery.leases
WHERE stream >= 'diazotroph:' AND stream < 'diazotroph;'
ORDER BY resource_id
LIMIT $1;
