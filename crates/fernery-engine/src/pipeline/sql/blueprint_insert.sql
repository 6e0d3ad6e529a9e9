-- Stores a blueprint; no row if it is here already: its digest determines it.
INSERT INTO blueprints (blueprint, azolla_id, document, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (blueprint) DO NOTHING
RETURNING blueprint;
