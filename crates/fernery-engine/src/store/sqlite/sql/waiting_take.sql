-- Takes a waiting job out of its stream for somebody who has done its work; no row: it does not wait.
DELETE FROM ready
WHERE stream = (SELECT stream FROM jobs WHERE job_id = ?1) AND seq = (SELECT seq FROM jobs WHERE job_id = ?1)
  AND job_id = ?1
RETURNING stream, claim_version, attempt_no
