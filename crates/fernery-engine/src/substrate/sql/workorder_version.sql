UPDATE workorders SET claim_version = $2 WHERE work_order_id = $1 AND claim_version < $2
RETURNING work_order_id;
