-- Puts a blueprint in force for an azolla.
INSERT INTO azollas (azolla_id, blueprint, updated_at) VALUES ($1, $2, $3)
ON CONFLICT (azolla_id) DO UPDATE SET blueprint = $2, updated_at = $3
RETURNING azolla_id;
