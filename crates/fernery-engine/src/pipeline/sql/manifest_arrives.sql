-- As it was elsewhere. Nobody is told of it here.
INSERT INTO manifests (manifest_id, azolla_id, work_order_id, created_at, facts_digest, facts, built_by, document)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (manifest_id) DO NOTHING
RETURNING manifest_id;
