-- Stores a new objective; no row if its id is taken.
INSERT INTO objectives (objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency,
                        metadata, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
ON CONFLICT (objective_id) DO NOTHING
RETURNING objective_id;
