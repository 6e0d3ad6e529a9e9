-- A reviewer looks at a run of a ticket.
INSERT INTO looks (objective_id, reviewer, run_id, before_run_id, looked_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (objective_id, reviewer) DO UPDATE SET run_id = $3, before_run_id = $4, looked_at = $5
RETURNING run_id;
