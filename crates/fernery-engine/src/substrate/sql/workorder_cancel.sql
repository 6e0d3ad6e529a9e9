UPDATE workorders SET cancelled = true WHERE objective_id = $1 AND NOT judged
RETURNING work_order_id;
