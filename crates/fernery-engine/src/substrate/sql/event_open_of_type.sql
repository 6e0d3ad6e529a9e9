-- The oldest request that nobody has dealt with.
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version FROM events
WHERE azolla_id = $1 AND type = $2 AND NOT processed
ORDER BY created_at, event_id
LIMIT 1;
