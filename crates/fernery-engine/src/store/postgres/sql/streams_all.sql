-- All streams that were ever used (or one, if $1 names it), their counts, and since when the oldest claimable job waits.
WITH counts AS (
    SELECT name, paused, ready, scheduled, running, succeeded, dead, cancelled FROM fernery.streams
    UNION ALL
    SELECT stream, false, ready, scheduled, running, succeeded, dead, cancelled FROM fernery.stream_deltas
)
SELECT c.name, bool_or(c.paused), sum(c.ready)::bigint, sum(c.scheduled)::bigint, sum(c.running)::bigint,
       sum(c.succeeded)::bigint, sum(c.dead)::bigint, sum(c.cancelled)::bigint,
       (SELECT r.ready_at FROM fernery.ready r WHERE r.stream = c.name ORDER BY r.seq LIMIT 1)
FROM counts c
WHERE $1::text IS NULL OR c.name = $1
GROUP BY c.name
ORDER BY c.name;
