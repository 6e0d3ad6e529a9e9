-- Forgets what a process said before, and what was said before $2.
DELETE FROM hosts WHERE owner = $1 OR said_at < $2
RETURNING azolla_id;
