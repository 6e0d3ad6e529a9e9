-- Tickets, newest first, below a place.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE objective_type = 'TICKET' AND (created_at, objective_id) < ($1, $2)
ORDER BY created_at DESC, objective_id DESC
LIMIT $3;
