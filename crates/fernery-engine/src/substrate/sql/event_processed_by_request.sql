SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id
FROM events WHERE type = $1 AND resource_id = $2 AND entry = 1;
