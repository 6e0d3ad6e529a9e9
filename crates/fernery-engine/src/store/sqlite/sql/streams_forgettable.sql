-- Up to ?2 streams that hold nothing, are not paused, hide nothing from viewers and have not changed since ?1. Those of workorders
-- stay: their jobs do.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
SELECT name FROM streams
WHERE NOT paused AND NOT redact AND ready = 0 AND scheduled = 0 AND running = 0 AND dead = 0 AND used_at < ?1
  AND name NOT GLOB 'diazotroph:*'
LIMIT ?2
