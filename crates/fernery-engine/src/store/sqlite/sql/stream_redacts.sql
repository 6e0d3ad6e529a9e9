-- Whether viewers do not see what the jobs of a stream hold.
SELECT EXISTS (SELECT 1 FROM streams WHERE name = ?1 AND redact)
