-- The manifest that one workorder made; no row if it made none.
SELECT document, facts, facts_digest, built_by, work_order_id FROM manifests WHERE work_order_id = $1;
