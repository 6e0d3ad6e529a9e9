-- Insert or leave: a blueprint never changes under its digest.
INSERT INTO blueprints (blueprint, azolla_id, document, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (blueprint) DO NOTHING
RETURNING blueprint;
