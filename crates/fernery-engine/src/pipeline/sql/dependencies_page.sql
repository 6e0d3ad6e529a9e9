-- Which objective waits for which, below the place ($1, $2).
SELECT objective_id, blocker_id, after_id FROM dependencies WHERE (objective_id, blocker_id) < ($1, $2)
ORDER BY objective_id DESC, blocker_id DESC LIMIT $3;
