-- Dead jobs, newest id first, and whether each may be meant: of the stream ?3 if it is given.
SELECT job_id, ?3 IS NULL OR stream = ?3
FROM dead_letters WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
