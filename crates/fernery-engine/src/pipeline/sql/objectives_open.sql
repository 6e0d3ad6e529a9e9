-- Objectives of one azolla that are not DONE or not confirmed, and neither cancelled nor snoozed beyond $8, the most important
-- first.
-- A list of words has the form ,A,B, and an empty list excludes nothing. Times are compared in a CASE, so that the
-- planner reads rows in the order of the index up to the limit, instead of reading by time and sorting.
SELECT objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency, blocked_reason,
       metadata, created_at, updated_at, entry, approval, unconfirmed, failures, attempts, wall_ms, tokens, cost_usd_micros
FROM objectives
WHERE azolla_id = $1 AND objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed) AND coalesce(blocked_reason, '') <> 'cancelled'
  AND CASE WHEN created_at > $3 AND created_at < $4 AND updated_at < $5 THEN true ELSE false END
  AND ($6 = '' OR $6 LIKE '%,' || status || ',%') AND ($7 = '' OR $7 LIKE '%,' || urgency || ',%')
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = objective_id AND s.until > $8)
ORDER BY importance, urgency, created_at, objective_id
LIMIT $2;
