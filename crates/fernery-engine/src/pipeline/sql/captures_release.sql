-- Releases the held captures of an azolla to triage. They keep the time since when they wait.
UPDATE captures SET held = false WHERE azolla_id = $1 AND held
RETURNING capture_id;
