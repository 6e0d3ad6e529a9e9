-- Ids of candidates between $1 and $2 that end like $3, in order.
SELECT candidate_id FROM candidates WHERE candidate_id >= $1 AND candidate_id <= $2 AND candidate_id LIKE $3 ORDER BY candidate_id LIMIT $4;
