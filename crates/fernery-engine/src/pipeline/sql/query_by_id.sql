-- One question to another azolla, with its answer.
SELECT document, response, event_id, results_told FROM queries WHERE query_id = $1;
