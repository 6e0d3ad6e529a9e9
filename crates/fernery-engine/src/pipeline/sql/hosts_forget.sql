-- Forgets the azollas that a process no longer names, and what was said before $3.
DELETE FROM hosts WHERE owner = $1 AND said_at < $2 OR said_at < $3
RETURNING azolla_id;
