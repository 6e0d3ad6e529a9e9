-- Writes what a step changed. Only under objective_lock.
UPDATE objectives
SET title = $2, acceptance_criteria = $3, status = $4, importance = $5, urgency = $6, blocked_reason = $7, metadata = $8,
    updated_at = $9, entry = $10, approval = $11, unconfirmed = $12, failures = $13, attempts = $14, wall_ms = $15,
    tokens = $16, cost_usd_micros = $17
WHERE objective_id = $1
RETURNING objective_id;
