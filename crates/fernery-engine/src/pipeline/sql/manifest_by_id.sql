-- One manifest, with the facts it was made of.
SELECT document, facts, facts_digest, built_by, work_order_id FROM manifests WHERE manifest_id = $1;
