-- The oldest request that nobody has dealt with, and its id.
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, coalesce(request_id, resource_id) AS asked_as
FROM events
WHERE azolla_id = $1 AND type = $2 AND NOT processed AND stands_in_for IS NULL
ORDER BY created_at, event_id
LIMIT 1;
