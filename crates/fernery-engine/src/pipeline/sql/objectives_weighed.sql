-- Objectives of one azolla, the most important first. Open, cancelled and finished ones are each read in the order of their index and no
-- further than the limit.
-- A list of words has the form ,A,B, and an empty list excludes nothing. Times are compared in a CASE, so that no index on them is used.
SELECT * FROM (
    SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
           metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
    FROM objectives
    WHERE azolla_id = $1 AND objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed)
      AND coalesce(blocked_reason, '') <> 'cancelled'
      AND CASE WHEN created_at > $3 AND created_at < $4 AND updated_at < $5 THEN true ELSE false END
      AND ($6 = '' OR $6 LIKE '%,' || status || ',%') AND ($7 = '' OR $7 LIKE '%,' || urgency || ',%')
    ORDER BY importance, urgency, created_at, objective_id
    LIMIT $2) open
UNION ALL
SELECT * FROM (
    SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
           metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
    FROM objectives
    WHERE azolla_id = $1 AND objective_type = 'TICKET' AND blocked_reason = 'cancelled'
      AND CASE WHEN created_at > $3 AND created_at < $4 AND updated_at < $5 THEN true ELSE false END
      AND ($6 = '' OR $6 LIKE '%,' || status || ',%') AND ($7 = '' OR $7 LIKE '%,' || urgency || ',%')
    ORDER BY importance, urgency, created_at, objective_id
    LIMIT $2) cancelled
UNION ALL
SELECT * FROM (
    SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
           metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
    FROM objectives
    WHERE azolla_id = $1 AND objective_type = 'TICKET' AND status = 'DONE' AND NOT unconfirmed
      AND CASE WHEN created_at > $3 AND created_at < $4 AND updated_at < $5 THEN true ELSE false END
      AND ($6 = '' OR $6 LIKE '%,' || status || ',%') AND ($7 = '' OR $7 LIKE '%,' || urgency || ',%')
    ORDER BY importance, urgency, created_at, objective_id
    LIMIT $2) done
ORDER BY importance, urgency, created_at, objective_id
LIMIT $2;
