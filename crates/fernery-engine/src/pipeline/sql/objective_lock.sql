-- As objective_by_id, locked until the transaction ends.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives WHERE objective_id = $1 FOR UPDATE;
