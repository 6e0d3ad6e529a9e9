-- Jobs, newest id first, and whether each may be meant: of the stream ?3 if it is given, and not ended as DEAD or CANCELLED unless ?4.
SELECT job_id, (?3 IS NULL OR stream = ?3) AND (?4 OR ended IS NULL)
FROM jobs WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
