INSERT INTO queries (query_id, azolla_id, event_id, created_at, document, response) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (query_id) DO NOTHING
RETURNING query_id;
