-- Marks a workorder as EXECUTED, once: the first bundle counts, whatever its job does later (invariant 2).
UPDATE workorders SET status = 'EXECUTED', executed_at = $2, output_id = $3, spent_ms = spent_ms + $4, claim_version = $5
WHERE work_order_id = $1 AND status = 'CREATED'
RETURNING work_order_id;
