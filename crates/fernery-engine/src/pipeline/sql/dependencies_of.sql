-- The objectives that wait for this one, with the blocker that says so.
SELECT objective_id, blocker_id FROM dependencies WHERE after_id = $1
ORDER BY objective_id, blocker_id;
