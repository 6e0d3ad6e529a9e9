-- Stores a query and its response; no row if its id is here already.
INSERT INTO queries (query_id, azolla_id, event_id, created_at, document, response, results_told)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (query_id) DO NOTHING
RETURNING query_id;
