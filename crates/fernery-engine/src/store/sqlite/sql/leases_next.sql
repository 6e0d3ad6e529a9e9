-- Of each stream, when the first of its leases runs out that had not at ?1, and when the last ran out that had. The table
-- holds only what runs now, so this reads all of it.
SELECT stream, min(expires_at) FILTER (WHERE expires_at > ?1), max(expires_at) FILTER (WHERE expires_at <= ?1)
FROM leases WHERE attempt_id IS NOT NULL GROUP BY stream
