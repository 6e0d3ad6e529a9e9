-- WAITING candidates of one azolla that are due by $2 and not snoozed beyond $3, the earliest first.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE azolla_id = $1 AND status = 'WAITING' AND due_at IS NOT NULL AND due_at <= $2
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'candidate' AND s.subject_id = candidate_id AND s.until > $3)
ORDER BY due_at, candidate_id
LIMIT $4;
