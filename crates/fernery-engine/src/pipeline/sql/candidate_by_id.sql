-- One candidate, whatever its status, without a lock.
SELECT candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into, created_at, updated_at
FROM candidates WHERE candidate_id = $1;
