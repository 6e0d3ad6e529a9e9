-- Adds counts to the row of a stream and a span, and locks it. No row if the write $10 was here already. A row that is new
-- (`writes` is 0) has the histograms too; of another one they are answered as they were.
INSERT INTO stream_stats (stream, minutes, at, enqueued, completed, failed, dead, waits, runs, kept_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (stream, minutes, at) DO UPDATE
SET enqueued = stream_stats.enqueued + excluded.enqueued, completed = stream_stats.completed + excluded.completed,
    failed = stream_stats.failed + excluded.failed, dead = stream_stats.dead + excluded.dead,
    writes = stream_stats.writes + 1, kept_by = excluded.kept_by
WHERE stream_stats.kept_by <> excluded.kept_by
RETURNING writes, waits, runs;
