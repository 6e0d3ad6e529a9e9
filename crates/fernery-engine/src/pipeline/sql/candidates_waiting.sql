-- WAITING candidates of one azolla that are not snoozed beyond $5, oldest first, above a place: the one that has waited longest
-- is shown first.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE azolla_id = $1 AND status = 'WAITING' AND (created_at, candidate_id) > ($2, $3)
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'candidate' AND s.subject_id = candidate_id AND s.until > $5)
ORDER BY created_at, candidate_id
LIMIT $4;
