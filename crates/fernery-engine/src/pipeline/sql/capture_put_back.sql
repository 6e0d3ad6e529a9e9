-- Takes a capture out of its triage workorder: triage failed or left it, and tries it again from $3 on.
UPDATE captures SET work_order_id = NULL, tries = tries + 1, ready_at = $3, updated_at = $4
WHERE capture_id = $1 AND work_order_id = $2 AND status = 'PENDING'
RETURNING capture_id;
