-- Stores a pause; no row if its key is taken: the first pause stays.
INSERT INTO pauses (pause_key, objective_id, azolla_id, created_at, document) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (pause_key) DO NOTHING
RETURNING pause_key;
