-- Up to ?3 streams after the one named ?2 (or the one that ?1 names) with their counts, and since when the oldest claimable job
-- has waited.
SELECT s.name, s.paused, s.redact, s.ready, s.scheduled, s.running, s.succeeded, s.dead, s.cancelled,
       (SELECT r.ready_at FROM ready r WHERE r.stream = s.name ORDER BY r.seq LIMIT 1) AS oldest_ready_at
FROM streams s
WHERE s.name > ?2 AND (?1 IS NULL OR s.name = ?1)
ORDER BY s.name
LIMIT ?3
