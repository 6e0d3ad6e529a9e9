-- How many streams there are, or how many of them the token ?1 opened; no further than to ?2.
SELECT count(*) FROM (SELECT 1 FROM streams WHERE ?1 IS NULL OR opened_by = ?1 LIMIT ?2)
