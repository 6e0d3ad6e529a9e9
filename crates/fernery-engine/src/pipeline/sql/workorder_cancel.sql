-- Marks the unfinished workorder of an objective as cancelled; no row if there is none.
UPDATE workorders SET cancelled = true WHERE objective_id = $1 AND NOT judged
RETURNING work_order_id;
