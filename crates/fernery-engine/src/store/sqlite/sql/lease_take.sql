-- Ends a lease for whoever proves to hold it. (No RETURNING: it costs SQLite a temporary table per statement.)
DELETE FROM leases WHERE resource_id = ?1 AND attempt_id = ?2 AND token_hash = ?3
