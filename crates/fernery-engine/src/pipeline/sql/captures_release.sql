-- A person lets what came with an import go to triage; it has waited since it came.
UPDATE captures SET held = false WHERE azolla_id = $1 AND held
RETURNING capture_id;
