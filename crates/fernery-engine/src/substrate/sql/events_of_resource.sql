SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id, entry
FROM events WHERE type = $1 AND resource_id = $2 ORDER BY entry;
