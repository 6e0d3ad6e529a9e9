-- Forgets up to $2 streams that hold nothing, are not paused, hide nothing from viewers (their next job is to be hidden too) and
-- have not changed for $1 ms. Those of workorders stay: their jobs do. A count that is appended at the same moment makes the
-- stream anew when it is folded.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
DELETE FROM fernery.streams WHERE name IN (
    SELECT s.name FROM fernery.streams s
    WHERE NOT s.paused AND NOT s.redact AND s.ready = 0 AND s.scheduled = 0 AND s.running = 0 AND s.dead = 0
      AND s.used_at < fernery.fernery_now() - $1::bigint * interval '1 millisecond'
      AND s.name NOT LIKE 'diazotroph:%'
      AND NOT EXISTS (SELECT FROM fernery.stream_deltas d WHERE d.stream = s.name)
    LIMIT $2
    FOR UPDATE SKIP LOCKED)
RETURNING name;
