-- Stores an event of another instance. It is processed: nothing that is imported can be scheduled.
INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at, processed, processed_at, reason, work_order_id,
    request_id, stands_in_for)
VALUES ($1, $2, $3, $4, $5, $6, true, $7, $8, $9, $10, $11)
ON CONFLICT (event_id) DO NOTHING
RETURNING event_id;
