-- Stores a pause; no row if there is one about the same thing, which stays as it is.
INSERT INTO pauses (pause_key, objective_id, azolla_id, created_at, document) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (pause_key) DO NOTHING
RETURNING pause_key;
