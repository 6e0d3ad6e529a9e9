-- Every stream that messages were sent to, the newest of them, and whether claims pass it by.
SELECT r.stream, r.newest_ms, r.newest_n, coalesce(s.paused, false) AS paused
FROM fernery.relayed r LEFT JOIN fernery.streams s ON s.name = r.stream
ORDER BY r.stream;
