-- Stores a decision; no row if its id is here already. Decisions are never changed.
INSERT INTO decisions (record_id, objective_id, kind, digest, shown, who, note, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (record_id) DO NOTHING
RETURNING record_id;
