-- Stores a candidate of another instance as it was there.
INSERT INTO candidates (candidate_id, azolla_id, work_order_id, document, made_by, status, objective_id, merged_into,
                        created_at, updated_at, urgency, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (candidate_id) DO NOTHING
RETURNING candidate_id;
