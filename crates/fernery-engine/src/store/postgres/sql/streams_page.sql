-- Up to $3 streams after the one named $2 (or the one that $1 names) with their counts, and since when the oldest claimable job
-- waits. Counts that are not folded yet may be of streams that have no row yet.
WITH names AS MATERIALIZED (
    SELECT name FROM (
        (SELECT name FROM fernery.streams WHERE name > $2 AND ($1::text IS NULL OR name = $1) ORDER BY name LIMIT $3)
        UNION
        (SELECT DISTINCT stream FROM fernery.stream_deltas WHERE stream > $2 AND ($1::text IS NULL OR stream = $1)
         ORDER BY stream LIMIT $3)
    ) AS n(name)
    ORDER BY name LIMIT $3
), counts AS (
    SELECT name, paused, redact, ready, scheduled, running, succeeded, dead, cancelled FROM fernery.streams
    WHERE name IN (SELECT name FROM names)
    UNION ALL
    SELECT stream, false, false, ready, scheduled, running, succeeded, dead, cancelled FROM fernery.stream_deltas
    WHERE stream IN (SELECT name FROM names)
)
SELECT c.name, bool_or(c.paused) AS paused, bool_or(c.redact) AS redact, sum(c.ready)::bigint AS ready,
       sum(c.scheduled)::bigint AS scheduled, sum(c.running)::bigint AS running, sum(c.succeeded)::bigint AS succeeded,
       sum(c.dead)::bigint AS dead, sum(c.cancelled)::bigint AS cancelled,
       (SELECT r.ready_at FROM fernery.ready r WHERE r.stream = c.name ORDER BY r.seq LIMIT 1) AS oldest_ready_at
FROM counts c
GROUP BY c.name
ORDER BY c.name;
