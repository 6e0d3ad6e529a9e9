-- A job leaves the dead-letter queue.
DELETE FROM dead_letters WHERE job_id = ?1
