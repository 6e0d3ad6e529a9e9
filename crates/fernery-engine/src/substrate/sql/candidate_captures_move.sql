UPDATE candidate_captures SET candidate_id = $2 WHERE candidate_id = $1
RETURNING capture_id;
