SELECT document FROM bundles WHERE work_order_id = $1;
