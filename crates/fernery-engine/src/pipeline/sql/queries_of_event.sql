-- The queries for one event, with their responses.
SELECT document, response, event_id, results_told FROM queries WHERE event_id = $1 ORDER BY query_id;
