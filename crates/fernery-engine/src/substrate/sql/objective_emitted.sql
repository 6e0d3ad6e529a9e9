UPDATE objectives SET emitted = $2 WHERE objective_id = $1 AND emitted < $2
RETURNING objective_id;
