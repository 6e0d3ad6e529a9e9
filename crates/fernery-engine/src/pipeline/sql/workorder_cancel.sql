-- Says that nobody wants the workorder of an objective any more; no row if none is under way.
UPDATE workorders SET cancelled = true WHERE objective_id = $1 AND NOT judged
RETURNING work_order_id;
