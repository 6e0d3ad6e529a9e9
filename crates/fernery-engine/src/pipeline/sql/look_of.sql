-- Which run of a ticket a reviewer looked at last.
SELECT run_id, before_run_id, looked_at FROM looks WHERE objective_id = $1 AND reviewer = $2;
