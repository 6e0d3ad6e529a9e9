-- The streams $1 had to be made before they could be sent to. Those that messages were sent to before have lost them.
INSERT INTO fernery.reemissions (stream, next_place, last_place)
SELECT stream, 0, (SELECT last_value FROM fernery.places) FROM fernery.relayed
WHERE stream = ANY ($1::text[]) AND newest_ms > 0
ORDER BY stream
ON CONFLICT (stream) DO UPDATE SET next_place = 0, last_place = excluded.last_place
RETURNING stream;
