-- Stores a line of another instance as it was there; if it comes again, it is held.
INSERT INTO recurrences (recurrence_id, azolla_id, every, text, schedule, next_at, created_at, stopped_at, held)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (recurrence_id) DO NOTHING
RETURNING recurrence_id;
