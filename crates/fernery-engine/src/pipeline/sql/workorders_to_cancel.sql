-- Workorders whose cancel has not reached their job for certain, above a place.
SELECT work_order_id FROM workorders WHERE cancelled AND status = 'CREATED' AND work_order_id > $1
ORDER BY work_order_id LIMIT $2;
