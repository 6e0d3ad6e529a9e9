-- How many streams come after the one named $1, and the sums of their counts.
WITH counts AS (
    SELECT name, ready, scheduled, running, succeeded, dead, cancelled FROM fernery.streams WHERE name > $1
    UNION ALL
    SELECT stream, ready, scheduled, running, succeeded, dead, cancelled FROM fernery.stream_deltas WHERE stream > $1
)
SELECT count(DISTINCT name) AS streams, coalesce(sum(ready), 0)::bigint AS ready,
       coalesce(sum(scheduled), 0)::bigint AS scheduled, coalesce(sum(running), 0)::bigint AS running,
       coalesce(sum(succeeded), 0)::bigint AS succeeded, coalesce(sum(dead), 0)::bigint AS dead,
       coalesce(sum(cancelled), 0)::bigint AS cancelled
FROM counts;
