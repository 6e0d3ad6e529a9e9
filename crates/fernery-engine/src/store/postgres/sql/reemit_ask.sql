-- The stream $1, whose newest message is ($2, $3) by our records, has lost some: its waiting jobs are told of again. Of all
-- processes that find out only one asks.
WITH won AS (
    UPDATE fernery.relayed SET newest_ms = 0, newest_n = 0
    WHERE stream = $1 AND newest_ms = $2 AND newest_n = $3
    RETURNING stream
)
INSERT INTO fernery.reemissions (stream, next_place, last_place)
SELECT stream, 0, (SELECT last_value FROM fernery.places) FROM won
ON CONFLICT (stream) DO UPDATE SET next_place = 0, last_place = excluded.last_place
RETURNING stream;
