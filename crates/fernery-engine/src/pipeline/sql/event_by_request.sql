-- A request by its id. An event of an earlier version has it as its resource.
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id
FROM events WHERE request_id = $2 AND type = $1
UNION ALL
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id
FROM events WHERE type = $1 AND resource_id = $2 AND entry = 1 AND request_id IS NULL AND stands_in_for IS NULL
LIMIT 1;
