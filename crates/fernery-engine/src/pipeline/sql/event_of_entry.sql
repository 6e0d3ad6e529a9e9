-- The event of one entry into TODO, locked until the transaction ends.
SELECT event_id, type, resource_id, azolla_id, created_at, processed
FROM events WHERE type = $1 AND resource_id = $2 AND entry = $3 FOR UPDATE;
