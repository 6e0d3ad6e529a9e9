-- All events of one type about one resource, in the order of their entries.
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id, entry,
    request_id, stands_in_for
FROM events WHERE type = $1 AND resource_id = $2 ORDER BY entry;
