-- Streams that nobody may claim from.
SELECT name FROM streams WHERE paused
