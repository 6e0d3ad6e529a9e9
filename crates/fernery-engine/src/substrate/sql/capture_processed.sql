UPDATE captures SET status = 'PROCESSED', updated_at = $3
WHERE capture_id = $1 AND work_order_id = $2 AND status = 'PENDING'
RETURNING capture_id;
