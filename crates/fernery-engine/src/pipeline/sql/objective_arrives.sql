-- Stores an objective of another instance as it was there. No approval covers it here, and no entry into TODO waits for its
-- event.
INSERT INTO objectives (objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance, urgency,
                        blocked_reason, metadata, created_at, updated_at, entry, emitted, unconfirmed, failures, attempts,
                        wall_ms, tokens, cost_usd_micros)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16, $17, $18, $19)
ON CONFLICT (objective_id) DO NOTHING
RETURNING objective_id;
