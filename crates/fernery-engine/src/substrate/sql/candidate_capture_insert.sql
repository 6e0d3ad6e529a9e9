INSERT INTO candidate_captures (capture_id, candidate_id) VALUES ($1, $2)
RETURNING capture_id;
