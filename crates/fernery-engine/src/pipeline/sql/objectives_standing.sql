-- The standing objectives: one for each azolla without tickets, and those of its earlier blueprints.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE objective_type = 'STANDING'
ORDER BY created_at, objective_id;
