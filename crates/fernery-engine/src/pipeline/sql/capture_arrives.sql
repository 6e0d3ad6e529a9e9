-- Stores a capture of another instance as it was there. No event tells of it here; if it waits, it is held.
INSERT INTO captures (capture_id, azolla_id, raw_content, raw_hex, source_label, status, created_at, updated_at, ready_at,
                      entry, tries, work_order_id, held)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (capture_id) DO NOTHING
RETURNING capture_id;
