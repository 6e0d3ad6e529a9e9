-- A page of the queries of all azollas, newest first, below a place.
SELECT document, response, event_id, results_told, azolla_id FROM queries
WHERE (created_at, query_id) < ($1, $2)
ORDER BY created_at DESC, query_id DESC
LIMIT $3;
