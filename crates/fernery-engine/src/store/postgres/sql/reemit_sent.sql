-- The waiting jobs of stream $1 were told of up to before place $2, or all (NULL); ($3, $4) is the newest message.
WITH done AS (
    DELETE FROM fernery.reemissions WHERE stream = $1 AND $2::bigint IS NULL
), further AS (
    UPDATE fernery.reemissions SET next_place = $2 WHERE stream = $1 AND $2::bigint IS NOT NULL
)
INSERT INTO fernery.relayed (stream, newest_ms, newest_n) VALUES ($1, $3, $4)
ON CONFLICT (stream) DO UPDATE SET newest_ms = excluded.newest_ms, newest_n = excluded.newest_n
WHERE (excluded.newest_ms, excluded.newest_n) > (relayed.newest_ms, relayed.newest_n);
