-- How many wait, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM captures WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL LIMIT $2) waiting;
