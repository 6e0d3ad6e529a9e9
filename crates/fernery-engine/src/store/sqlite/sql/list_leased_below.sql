-- Running jobs, newest id first.
SELECT resource_id FROM leases
WHERE attempt_id IS NOT NULL AND resource_id < ?1
ORDER BY resource_id DESC
LIMIT ?2
