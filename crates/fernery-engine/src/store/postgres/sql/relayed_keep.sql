-- The stream $1, whose newest message was ($2, $3), could not be forgotten.
INSERT INTO fernery.relayed (stream, newest_ms, newest_n) VALUES ($1, $2, $3) ON CONFLICT (stream) DO NOTHING;
