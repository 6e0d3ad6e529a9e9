-- Removes the picked range: everything up to the last picked place.
DELETE FROM ready WHERE stream = ?1 AND seq <= ?2
