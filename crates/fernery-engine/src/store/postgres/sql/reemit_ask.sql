-- The stream $1, whose newest message is ($2, $3) by our records, has lost some: its waiting jobs are told of again. Of all
-- processes that find out only one asks; another one takes back the record that it made ($4) to find out.
WITH won AS (
    UPDATE fernery.relayed SET newest_ms = 0, newest_n = 0
    WHERE stream = $1 AND newest_ms = $2 AND newest_n = $3
    RETURNING stream
), asked AS (
    UPDATE fernery.reemissions SET next_place = 0, last_place = (SELECT last_value FROM fernery.places)
    WHERE stream IN (SELECT stream FROM won)
), undone AS (
    DELETE FROM fernery.reemissions WHERE stream = $1 AND $4::boolean AND NOT EXISTS (SELECT FROM won)
)
SELECT stream FROM won;
