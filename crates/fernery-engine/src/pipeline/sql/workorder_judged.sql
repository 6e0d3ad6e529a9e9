-- Says that a workorder has its verdict; no row if it had one before.
UPDATE workorders SET judged = true WHERE work_order_id = $1 AND NOT judged
RETURNING work_order_id;
