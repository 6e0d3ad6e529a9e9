-- Puts a capture into triage workorder $2; no row unless it is PENDING and in no workorder.
UPDATE captures SET work_order_id = $2, updated_at = $3
WHERE capture_id = $1 AND status = 'PENDING' AND work_order_id IS NULL
RETURNING capture_id;
