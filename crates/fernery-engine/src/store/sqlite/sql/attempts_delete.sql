-- Forgets the history of a job.
DELETE FROM attempts WHERE job_id = ?1
