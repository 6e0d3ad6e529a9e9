-- What is not done, or done and not looked at, of one azolla, above a place.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE azolla_id = $1 AND objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed)
ORDER BY importance, urgency, created_at, objective_id
LIMIT $2;
