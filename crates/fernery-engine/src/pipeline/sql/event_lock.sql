-- One event, locked until the transaction ends.
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id, stands_in_for
FROM events WHERE event_id = $1 FOR UPDATE;
