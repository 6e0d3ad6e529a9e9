-- After a restore: ends every claim of a polling worker.
DELETE FROM claims
RETURNING resource_id;
