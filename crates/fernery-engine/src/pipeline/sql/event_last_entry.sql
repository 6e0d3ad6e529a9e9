-- How many there are of this type and resource.
SELECT coalesce(max(entry), 0) FROM events WHERE type = $1 AND resource_id = $2;
