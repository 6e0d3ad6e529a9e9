-- Forgets a stream, if it still holds nothing, is not paused, hides nothing from viewers (its next job is to be hidden too) and
-- has not changed since ?2.
DELETE FROM streams
WHERE name = ?1 AND NOT paused AND NOT redact AND ready = 0 AND scheduled = 0 AND running = 0 AND dead = 0 AND used_at < ?2
