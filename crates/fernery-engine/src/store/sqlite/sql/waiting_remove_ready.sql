-- Takes a waiting job out of its stream; answers its version. No row: it is not there.
DELETE FROM ready
WHERE stream = (SELECT stream FROM jobs WHERE job_id = ?1) AND seq = (SELECT seq FROM jobs WHERE job_id = ?1)
  AND job_id = ?1
RETURNING claim_version
