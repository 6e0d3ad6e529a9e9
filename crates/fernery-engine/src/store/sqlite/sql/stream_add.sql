-- Adds what a batch changed to the counts of a stream.
INSERT INTO streams (name, ready, scheduled, running, succeeded, dead, cancelled, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (name) DO UPDATE SET
    ready = ready + excluded.ready, scheduled = scheduled + excluded.scheduled, running = running + excluded.running,
    succeeded = succeeded + excluded.succeeded, dead = dead + excluded.dead, cancelled = cancelled + excluded.cancelled,
    used_at = excluded.used_at
