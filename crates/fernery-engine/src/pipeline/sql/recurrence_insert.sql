-- Stores a line that is captured again and again; no row if it is there.
INSERT INTO recurrences (recurrence_id, azolla_id, every, text, schedule, next_at, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (recurrence_id) DO NOTHING
RETURNING recurrence_id;
