-- A job that waits again has a new place.
UPDATE jobs SET seq = ?2 WHERE job_id = ?1
