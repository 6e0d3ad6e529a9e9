-- Jobs, newest id first.
SELECT job_id FROM jobs WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
