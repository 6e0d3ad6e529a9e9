-- One event for one entry into TODO (invariant 1).
INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (type, resource_id, entry) DO NOTHING
RETURNING event_id;
