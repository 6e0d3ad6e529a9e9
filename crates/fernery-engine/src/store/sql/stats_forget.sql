-- Forgets up to $3 rows with spans of $1 minutes that begin before $2.
DELETE FROM stream_stats WHERE (stream, minutes, at) IN (
    SELECT stream, minutes, at FROM stream_stats WHERE minutes = $1 AND at < $2 ORDER BY at LIMIT $3
)
RETURNING stream;
