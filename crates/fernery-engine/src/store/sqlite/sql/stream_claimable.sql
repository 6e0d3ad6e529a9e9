-- Whether a stream has a job that can be claimed.
SELECT EXISTS (SELECT 1 FROM ready WHERE stream = ?1)
   AND NOT EXISTS (SELECT 1 FROM streams WHERE name = ?1 AND paused)
