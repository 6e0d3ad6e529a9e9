-- Takes back the mark of an end, only where it is there.
UPDATE jobs SET ended = NULL, ended_at = NULL, seq = ?2 WHERE job_id = ?1 AND ended IS NOT NULL
