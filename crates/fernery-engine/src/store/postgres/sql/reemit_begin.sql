-- Takes hold of the record of what is sent again of stream $1, before all else: whoever sends again holds it first, too. Answers
-- whether it had to be made.
INSERT INTO fernery.reemissions AS r (stream, next_place, last_place)
SELECT $1, 0, last_value FROM fernery.places
ON CONFLICT (stream) DO UPDATE SET stream = excluded.stream
RETURNING r.xmax = 0;
