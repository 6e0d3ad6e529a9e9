-- Stops or allows claims from a stream that was used; no row if it never was. Its counts may not have been folded yet.
INSERT INTO fernery.streams AS s (name, paused)
SELECT $1::text, $2::boolean
WHERE EXISTS (SELECT FROM fernery.streams WHERE name = $1) OR EXISTS (SELECT FROM fernery.stream_deltas WHERE stream = $1)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
RETURNING s.name;
