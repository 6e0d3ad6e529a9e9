-- Whether a closed attempt is still there.
SELECT EXISTS (SELECT 1 FROM attempts WHERE job_id = ?1 AND attempt_no = ?2 AND attempt_id = ?3)
