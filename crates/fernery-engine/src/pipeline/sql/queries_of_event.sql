-- The questions to other azollas that were asked for one event, with their answers.
SELECT document, response, event_id, results_told FROM queries WHERE event_id = $1 ORDER BY query_id;
