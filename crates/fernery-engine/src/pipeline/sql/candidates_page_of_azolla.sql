-- All of one azolla, newest first, below a place. Nearly all are of one: the index by age serves.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE azolla_id = $4 AND (created_at, candidate_id) < ($1, $2)
ORDER BY created_at DESC, candidate_id DESC
LIMIT $3;
