-- Stores a new candidate as WAITING; no row if its id is taken.
INSERT INTO candidates (candidate_id, azolla_id, work_order_id, document, made_by, status, created_at, updated_at,
                        urgency, due_at)
VALUES ($1, $2, $3, $4, $5, 'WAITING', $6, $6, $7, $8)
ON CONFLICT (candidate_id) DO NOTHING
RETURNING candidate_id;
