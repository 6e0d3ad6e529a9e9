-- Tickets, newest first, below a place, of one azolla and status.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE azolla_id = $4 AND status = $5 AND objective_type = 'TICKET' AND (created_at, objective_id) < ($1, $2)
ORDER BY created_at DESC, objective_id DESC
LIMIT $3;
