SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id, entry
FROM events WHERE (created_at, event_id) < ($1, $2)
ORDER BY created_at DESC, event_id DESC
LIMIT $3;
