-- Every stream that messages have told of is told of again.
INSERT INTO fernery.reemissions (stream, next_place, last_place)
SELECT stream, 0, (SELECT last_value FROM fernery.places) FROM fernery.relayed ORDER BY stream
ON CONFLICT (stream) DO UPDATE SET next_place = 0, last_place = excluded.last_place;
