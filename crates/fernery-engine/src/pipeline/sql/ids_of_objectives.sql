-- Ids of objectives between $1 and $2 that end like $3, in order.
SELECT objective_id FROM objectives WHERE objective_id >= $1 AND objective_id <= $2 AND objective_id LIKE $3 ORDER BY objective_id LIMIT $4;
