-- Ids of workorders between $1 and $2 that end like $3, in order.
SELECT work_order_id FROM workorders WHERE work_order_id >= $1 AND work_order_id <= $2 AND work_order_id LIKE $3 ORDER BY work_order_id LIMIT $4;
