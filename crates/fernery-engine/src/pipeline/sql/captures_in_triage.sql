-- The captures of a triage workorder.
SELECT capture_id, tries FROM captures WHERE work_order_id = $1 AND status = 'PENDING' ORDER BY capture_id FOR UPDATE;
