-- As look_of, locked until the transaction ends.
SELECT run_id, before_run_id, looked_at FROM looks WHERE objective_id = $1 AND reviewer = $2 FOR UPDATE;
