-- The rows $1 were sent, and $2 to $4 are the newest messages of their streams.
WITH gone AS (
    DELETE FROM fernery.outbox WHERE id = ANY ($1::bigint[])
)
INSERT INTO fernery.relayed (stream, newest_ms, newest_n)
SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS s(stream, ms, n) ORDER BY stream
ON CONFLICT (stream) DO UPDATE SET newest_ms = excluded.newest_ms, newest_n = excluded.newest_n
WHERE (excluded.newest_ms, excluded.newest_n) > (relayed.newest_ms, relayed.newest_n);
