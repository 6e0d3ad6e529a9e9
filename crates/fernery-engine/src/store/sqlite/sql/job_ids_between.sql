-- Ids of jobs between ?1 and ?2 that end like ?3, of one producer if ?4 names it, in order.
SELECT job_id FROM jobs
WHERE job_id >= ?1 AND job_id <= ?2 AND hex(job_id) LIKE ?3 AND (?4 IS NULL OR producer = ?4)
ORDER BY job_id
LIMIT ?5
