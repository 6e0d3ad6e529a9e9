-- A page of events of all azollas, newest first, below the place ($1, $2).
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id, entry,
    request_id, stands_in_for
FROM events WHERE (created_at, event_id) < ($1, $2)
ORDER BY created_at DESC, event_id DESC
LIMIT $3;
