-- Raises the version by one, if it is the one that was read. This locks the workorder: whoever else takes or renews it
-- meanwhile finds another version. A gate takes it before its verdict, a landing after it.
UPDATE workorders SET claim_version = $2 + 1 WHERE work_order_id = $1 AND claim_version = $2
RETURNING claim_version;
