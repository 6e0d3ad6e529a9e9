-- The place is the lock: of two sealers one waits here, is left with nothing, and comes again.
INSERT INTO seals (place, entry_id, hash) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING
RETURNING place;
