-- A job that waits again, or whose time has come, has a new place: behind all that wait already.
UPDATE jobs SET seq = ?2 WHERE job_id = ?1
