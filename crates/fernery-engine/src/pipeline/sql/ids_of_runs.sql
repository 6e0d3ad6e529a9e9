-- Ids of run records between $1 and $2 that end like $3, in order.
SELECT run_id FROM runs WHERE run_id >= $1 AND run_id <= $2 AND run_id LIKE $3 ORDER BY run_id LIMIT $4;
