-- Raises the version by one, if it is the one that was read and there is no verdict yet. This locks the workorder: whoever
-- else takes or renews it meanwhile finds another version.
UPDATE workorders SET claim_version = $2 + 1 WHERE work_order_id = $1 AND claim_version = $2 AND NOT judged
RETURNING claim_version;
