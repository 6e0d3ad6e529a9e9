-- The output bundle of one workorder; no row before it has ended.
SELECT document FROM bundles WHERE work_order_id = $1;
