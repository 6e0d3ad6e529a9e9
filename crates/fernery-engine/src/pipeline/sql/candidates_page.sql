-- A page of candidates of all azollas, newest first, below the place ($1, $2).
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates
WHERE (created_at, candidate_id) < ($1, $2)
ORDER BY created_at DESC, candidate_id DESC
LIMIT $3;
