-- Stores an ended attempt of another instance; no row if its id is here already.
INSERT INTO past_attempts (attempt_id, work_order_id, attempt_no, document) VALUES ($1, $2, $3, $4)
ON CONFLICT (attempt_id) DO NOTHING
RETURNING attempt_id;
