-- Puts a blueprint in force for an azolla.
INSERT INTO azollas (azolla_id, blueprint, updated_at, tells) VALUES ($1, $2, $3, $4)
ON CONFLICT (azolla_id) DO UPDATE SET blueprint = $2, updated_at = $3, tells = $4
RETURNING azolla_id;
