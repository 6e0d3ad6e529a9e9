-- The newest manifest of an azolla.
SELECT document, facts, facts_digest, built_by, work_order_id FROM manifests WHERE azolla_id = $1
ORDER BY created_at DESC, manifest_id DESC
LIMIT 1;
