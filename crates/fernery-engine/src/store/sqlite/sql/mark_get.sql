SELECT value FROM marks WHERE name = ?1
