-- Stores a new capture as PENDING, ready for triage at once; no row if its id is here already.
INSERT INTO captures (capture_id, azolla_id, raw_content, raw_hex, source_label, status, created_at, updated_at, ready_at)
VALUES ($1, $2, $3, $4, $5, 'PENDING', $6, $7, $7)
ON CONFLICT (capture_id) DO NOTHING
RETURNING capture_id;
