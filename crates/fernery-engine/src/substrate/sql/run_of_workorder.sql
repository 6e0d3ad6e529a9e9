SELECT document, evidence FROM runs WHERE work_order_id = $1;
