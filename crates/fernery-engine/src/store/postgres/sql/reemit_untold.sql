-- Streams with jobs that wait and of which no message has ever told are told of. From stream to stream by the key, past the jobs.
WITH RECURSIVE waiting AS (
    (SELECT stream FROM fernery.ready ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT next.stream
    FROM waiting w
    CROSS JOIN LATERAL (
        SELECT r.stream FROM fernery.ready r WHERE r.stream > w.stream ORDER BY r.stream LIMIT 1
    ) next
)
INSERT INTO fernery.reemissions (stream, next_place, last_place)
SELECT w.stream, 0, (SELECT last_value FROM fernery.places)
FROM waiting w
WHERE NOT EXISTS (SELECT FROM fernery.relayed r WHERE r.stream = w.stream)
ORDER BY w.stream
ON CONFLICT (stream) DO NOTHING
RETURNING stream;
