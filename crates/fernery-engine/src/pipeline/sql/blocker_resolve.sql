-- Resolves one blocker of an objective; no row if it was resolved before.
UPDATE blockers SET resolved = true WHERE objective_id = $1 AND blocker_id = $2 AND NOT resolved
RETURNING blocker_id;
