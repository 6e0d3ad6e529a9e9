SELECT document, response FROM queries WHERE event_id = $1 ORDER BY query_id;
