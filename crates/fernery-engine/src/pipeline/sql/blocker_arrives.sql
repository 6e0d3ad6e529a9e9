-- Stores a blocker of another instance as it was there, resolved or not.
INSERT INTO blockers (objective_id, place, blocker_id, kind, description, resolved) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING blocker_id;
