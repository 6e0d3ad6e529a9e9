UPDATE marks SET value = ?2 WHERE name = ?1
