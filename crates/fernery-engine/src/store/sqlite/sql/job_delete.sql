-- Forgets a job; the caller has made sure that it has ended.
DELETE FROM jobs WHERE job_id = ?1
