-- Workorders whose cancel has not reached their job for certain.
SELECT work_order_id FROM workorders WHERE cancelled AND status = 'CREATED' ORDER BY work_order_id LIMIT $1;
