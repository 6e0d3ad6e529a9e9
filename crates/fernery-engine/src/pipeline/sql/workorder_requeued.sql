-- An attempt ended and another follows: adds its time, so that the next attempt has the rest of the budget.
UPDATE workorders SET spent_ms = spent_ms + $2, claim_version = $3
WHERE work_order_id = $1 AND status = 'CREATED'
RETURNING budget_ms - spent_ms;
