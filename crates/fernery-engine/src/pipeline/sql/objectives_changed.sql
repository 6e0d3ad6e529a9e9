-- Objectives of one azolla that changed after a place, in the order of their changes.
-- A list of words has the form ,A,B, and an empty list excludes nothing.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE azolla_id = $1 AND objective_type = 'TICKET'
  AND created_at > $3 AND created_at < $4 AND updated_at < $5
  AND ($6 = '' OR $6 LIKE '%,' || status || ',%') AND ($7 = '' OR $7 LIKE '%,' || urgency || ',%')
  AND (updated_at, objective_id) > ($8, $9)
ORDER BY updated_at, objective_id
LIMIT $2;
