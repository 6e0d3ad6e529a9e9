-- Marks a capture as PROCESSED; no row unless it is PENDING and in triage workorder $2.
UPDATE captures SET status = 'PROCESSED', updated_at = $3
WHERE capture_id = $1 AND work_order_id = $2 AND status = 'PENDING'
RETURNING capture_id;
