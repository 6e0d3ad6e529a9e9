-- Puts a capture into a candidate. A capture is in one candidate only: a second one is an error.
INSERT INTO candidate_captures (capture_id, candidate_id) VALUES ($1, $2)
RETURNING capture_id;
