-- Stores what the executor of a workorder is told; no row if its id is here already. Snapshots are never changed.
INSERT INTO snapshots (snapshot_id, objective_id, created_at, document) VALUES ($1, $2, $3, $4)
ON CONFLICT (snapshot_id) DO NOTHING
RETURNING snapshot_id;
