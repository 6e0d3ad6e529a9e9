-- Where more than $2 rows wait after the row $1, the oldest $2 go and their streams are told of again instead, once: of all jobs
-- that wait then, from the first one that those rows name. Rows about buried jobs ($3) stay, since nothing would tell of those
-- again. Answers how many went, and the last.
WITH too_many AS MATERIALIZED (
    SELECT FROM fernery.outbox WHERE id > $1 AND stream <> $3 ORDER BY id OFFSET $2 LIMIT 1
), oldest AS MATERIALIZED (
    SELECT id, stream, (SELECT min(p) FROM unnest(places) AS p) AS place FROM fernery.outbox
    WHERE id > $1 AND stream <> $3 AND EXISTS (SELECT FROM too_many)
    ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM fernery.outbox WHERE id = ANY (ARRAY(SELECT id FROM oldest))
), asked AS (
    INSERT INTO fernery.reemissions AS r (stream, next_place, last_place)
    SELECT stream, min(place), (SELECT last_value FROM fernery.places)
    FROM oldest WHERE place IS NOT NULL GROUP BY stream ORDER BY stream
    ON CONFLICT (stream) DO UPDATE
    SET next_place = least(r.next_place, excluded.next_place), last_place = excluded.last_place
)
SELECT count(*), coalesce(max(id), $1) FROM oldest;
