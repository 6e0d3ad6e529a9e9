-- Nobody waits for this objective any more.
DELETE FROM dependencies WHERE after_id = $1
RETURNING objective_id;
