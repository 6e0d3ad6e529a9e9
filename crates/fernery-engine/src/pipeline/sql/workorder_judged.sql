-- Marks a workorder as judged; no row if it was judged before.
UPDATE workorders SET judged = true WHERE work_order_id = $1 AND NOT judged
RETURNING work_order_id;
