-- What is not done, or done and not looked at, and changed after a place, of one azolla, in that order.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE azolla_id = $1 AND objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed) AND (updated_at, objective_id) > ($2, $3)
ORDER BY updated_at, objective_id
LIMIT $4;
