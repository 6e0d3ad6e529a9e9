-- Ids of captures between $1 and $2 that end like $3, in order.
SELECT capture_id FROM captures WHERE capture_id >= $1 AND capture_id <= $2 AND capture_id LIKE $3 ORDER BY capture_id LIMIT $4;
