-- Writes a number that the store keeps under a name.
UPDATE marks SET value = ?2 WHERE name = ?1
