-- Has the gates judge a workorder again, not before $2, and counts that; no row if it has a verdict.
UPDATE workorders SET gate_tries = gate_tries + 1, gate_not_before = $2 WHERE work_order_id = $1 AND NOT judged
RETURNING work_order_id;
