-- The place is the lock: of two sealers one fails here and comes again.
INSERT INTO seals (place, entry_id, hash) VALUES ($1, $2, $3)
RETURNING place;
