-- Newest first, below a place, of one azolla.
SELECT document, facts, facts_digest, built_by, work_order_id FROM manifests
WHERE azolla_id = $4 AND (created_at, manifest_id) < ($1, $2)
ORDER BY created_at DESC, manifest_id DESC
LIMIT $3;
