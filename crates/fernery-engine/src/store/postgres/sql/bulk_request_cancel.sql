-- Asks the holders of these jobs to end attempts that began before $2, where nobody has asked yet. One row each.
WITH held AS MATERIALIZED (
    SELECT resource_id FROM fernery.leases
    WHERE resource_id = ANY ($1::uuid[]) AND attempt_id IS NOT NULL AND NOT cancel_requested AND started_at < $2
    ORDER BY resource_id
    FOR UPDATE
)
UPDATE fernery.leases l SET cancel_requested = true, claim_version = l.claim_version + 1
FROM held
WHERE l.resource_id = held.resource_id
RETURNING l.resource_id AS job_id;
