-- Running jobs, newest id first, and whether each may be meant: of the stream ?3 if it is given.
SELECT resource_id, ?3 IS NULL OR stream = ?3
FROM leases
WHERE attempt_id IS NOT NULL AND resource_id < ?1
ORDER BY resource_id DESC
LIMIT ?2
