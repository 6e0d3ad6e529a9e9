-- WAITING candidates of one azolla of urgency $2 or more pressing that are not snoozed beyond $3, the most urgent first.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE azolla_id = $1 AND status = 'WAITING' AND urgency <= $2
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'candidate' AND s.subject_id = candidate_id AND s.until > $3)
ORDER BY urgency, created_at, candidate_id
LIMIT $4;
