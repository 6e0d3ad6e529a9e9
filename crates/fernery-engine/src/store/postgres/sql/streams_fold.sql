-- Adds up to $1 appended counts to their streams. Two at once take different rows, so nothing is added twice.
WITH picked AS MATERIALIZED (
    SELECT ctid AS place FROM fernery.stream_deltas LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    -- A delta is never updated, so the row that was locked is at the place where it was seen.
    DELETE FROM fernery.stream_deltas WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) RETURNING *
), folded AS (
    INSERT INTO fernery.streams AS s (name, ready, scheduled, running, succeeded, dead, cancelled)
    SELECT stream, sum(ready), sum(scheduled), sum(running), sum(succeeded), sum(dead), sum(cancelled)
    FROM gone GROUP BY stream ORDER BY stream
    ON CONFLICT (name) DO UPDATE
    SET ready = s.ready + excluded.ready, scheduled = s.scheduled + excluded.scheduled,
        running = s.running + excluded.running, succeeded = s.succeeded + excluded.succeeded,
        dead = s.dead + excluded.dead, cancelled = s.cancelled + excluded.cancelled, used_at = fernery.fernery_now()
)
SELECT count(*) FROM gone;
