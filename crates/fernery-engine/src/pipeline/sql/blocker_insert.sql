-- Stores an open blocker at the next place of its objective, whose row the caller holds locked or has just written.
INSERT INTO blockers (objective_id, place, blocker_id, kind, description, resolved) VALUES ($1, $2, $3, $4, $5, false)
RETURNING blocker_id;
