-- One query to another azolla, with its response.
SELECT document, response, event_id, results_told FROM queries WHERE query_id = $1;
