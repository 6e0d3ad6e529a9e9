-- A page of candidates of one azolla, newest first, below the place ($1, $2). Nearly all candidates are of one azolla, so the
-- index by age is enough.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE azolla_id = $4 AND (created_at, candidate_id) < ($1, $2)
ORDER BY created_at DESC, candidate_id DESC
LIMIT $3;
