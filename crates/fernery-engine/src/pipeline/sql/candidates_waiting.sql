-- WAITING candidates of one azolla, oldest first, above a place: the one that has waited longest is shown first.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE azolla_id = $1 AND status = 'WAITING' AND (created_at, candidate_id) > ($2, $3)
ORDER BY created_at, candidate_id
LIMIT $4;
