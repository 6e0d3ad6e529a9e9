-- How many captures are in a triage now, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM captures WHERE status = 'PENDING' AND work_order_id IS NOT NULL LIMIT $1) underway;
