-- After a restore: the versions of ended jobs, which may start over.
UPDATE jobs
SET claim_version = ?1 + max(claim_version, coalesce(
    (SELECT claim_version FROM attempts WHERE job_id = jobs.job_id ORDER BY attempt_no DESC LIMIT 1), 0))
WHERE ended IS NOT NULL
