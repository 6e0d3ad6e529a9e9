-- A request, counted among those of its azolla. Nothing is written if it is there already, or another took its number.
INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at, request_id, stands_in_for)
SELECT $1, $2, $3, $2, coalesce(max(entry), 0) + 1, $4, $5, $6 FROM events WHERE type = $3 AND resource_id = $2
ON CONFLICT DO NOTHING
RETURNING event_id;
