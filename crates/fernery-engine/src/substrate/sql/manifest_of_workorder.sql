SELECT document, facts, facts_digest, built_by, work_order_id FROM manifests WHERE work_order_id = $1;
