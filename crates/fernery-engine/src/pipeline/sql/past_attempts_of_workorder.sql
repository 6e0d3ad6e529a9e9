-- The imported attempts of a workorder.
SELECT document FROM past_attempts WHERE work_order_id = $1 ORDER BY attempt_no;
