-- Stops or allows claims from a stream that was used.
UPDATE streams SET paused = ?2 WHERE name = ?1
