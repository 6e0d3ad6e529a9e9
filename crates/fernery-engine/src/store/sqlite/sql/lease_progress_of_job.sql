-- How far the open attempt of a job is, if its holder said so.
SELECT percent, note FROM leases WHERE resource_id = ?1 AND percent IS NOT NULL
