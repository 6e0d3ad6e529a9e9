-- Puts a copy beside the database that it was made of.
ATTACH DATABASE ?1 AS copy
