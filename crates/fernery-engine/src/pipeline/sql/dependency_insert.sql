-- Stores that a blocker of an objective is about another objective.
INSERT INTO dependencies (objective_id, blocker_id, after_id) VALUES ($1, $2, $3)
ON CONFLICT (objective_id, blocker_id) DO NOTHING
RETURNING objective_id;
