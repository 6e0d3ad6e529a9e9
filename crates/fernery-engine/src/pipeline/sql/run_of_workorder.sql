-- The run record of one workorder, with the evidence of its gates; no row before it is judged.
SELECT document, evidence FROM runs WHERE work_order_id = $1;
