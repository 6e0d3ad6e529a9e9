-- The newest instant that the database has seen.
SELECT max((SELECT value FROM marks WHERE name = 'clock'),
           coalesce((SELECT max(heartbeat_at) FROM leases), 0),
           coalesce((SELECT finished_at FROM attempts ORDER BY rowid DESC LIMIT 1), 0),
           coalesce((SELECT created_at FROM jobs ORDER BY rowid DESC LIMIT 1), 0))
