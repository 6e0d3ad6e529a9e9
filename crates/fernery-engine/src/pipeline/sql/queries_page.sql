-- A page of the queries of one azolla, newest first.
SELECT document, response, event_id, results_told FROM queries
WHERE azolla_id = $4 AND (created_at, query_id) < ($1, $2)
ORDER BY created_at DESC, query_id DESC
LIMIT $3;
