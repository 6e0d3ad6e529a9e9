-- Whether a job is still there.
SELECT EXISTS (SELECT 1 FROM jobs WHERE job_id = ?1 AND created_at = ?2)
