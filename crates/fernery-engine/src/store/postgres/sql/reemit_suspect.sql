-- The waiting jobs of the streams $1 are told of again.
INSERT INTO fernery.reemissions (stream, next_place, last_place)
SELECT stream, 0, (SELECT last_value FROM fernery.places) FROM unnest($1::text[]) AS s(stream) ORDER BY stream
ON CONFLICT (stream) DO UPDATE SET next_place = 0, last_place = excluded.last_place;
