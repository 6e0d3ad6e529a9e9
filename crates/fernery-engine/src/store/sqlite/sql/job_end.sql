-- Marks an end that is not a success. Success is told by the last attempt, so that completing leaves this row alone.
UPDATE jobs SET ended = ?2, ended_at = ?3, claim_version = ?4 WHERE job_id = ?1
