-- What happened in the stream $1 in spans of $2 minutes, from $3 on, oldest first.
SELECT at, enqueued, completed, failed, dead, waits, runs
FROM stream_stats WHERE stream = $1 AND minutes = $2 AND at >= $3 ORDER BY at;
