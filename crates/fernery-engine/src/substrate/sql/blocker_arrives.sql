INSERT INTO blockers (objective_id, place, blocker_id, kind, description, resolved) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING blocker_id;
