-- Moves all captures of candidate $1 into candidate $2, into which it is merged.
UPDATE candidate_captures SET candidate_id = $2 WHERE candidate_id = $1
RETURNING capture_id;
