-- How many wait for triage, and how many are held, each counted no further than the limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM captures
                              WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL AND NOT held
                              LIMIT $2) waiting),
       (SELECT count(*) FROM (SELECT 1 FROM captures WHERE azolla_id = $1 AND held LIMIT $2) held);
