-- Unprocessed events that nobody holds, oldest first.
SELECT e.event_id, e.type, e.resource_id, e.azolla_id, e.created_at, e.processed, e.claim_version
FROM events e LEFT JOIN claims c ON c.resource_type = 'EVENT' AND c.resource_id = e.event_id
WHERE e.azolla_id = $1 AND e.type = $4 AND NOT e.processed AND (c.resource_id IS NULL OR c.lease_expires_at <= $2)
ORDER BY e.created_at, e.event_id
LIMIT $3;
