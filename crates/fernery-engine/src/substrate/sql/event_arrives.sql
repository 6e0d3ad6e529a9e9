-- Processed, every one: nothing that comes in can be scheduled.
INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at, processed, processed_at, reason, work_order_id)
VALUES ($1, $2, $3, $4, $5, $6, true, $7, $8, $9)
ON CONFLICT (event_id) DO NOTHING
RETURNING event_id;
