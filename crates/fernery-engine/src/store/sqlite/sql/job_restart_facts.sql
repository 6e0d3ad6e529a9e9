-- What starting over needs to know of an ended job.
SELECT j.unique_key, max(j.claim_version, coalesce(a.claim_version, 0)) AS claim_version,
       coalesce(a.attempt_no, 0) AS attempt_no
FROM jobs j
LEFT JOIN attempts a ON a.job_id = j.job_id
     AND a.attempt_no = (SELECT max(attempt_no) FROM attempts WHERE job_id = j.job_id)
WHERE j.job_id = ?1
