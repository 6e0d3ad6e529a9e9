-- Whether a stream was used.
SELECT EXISTS (SELECT 1 FROM streams WHERE name = ?1)
