-- The first $2 confirmed tickets of an azolla that nobody has merged, those that wait longest first, each with the number of all;
-- none whose patch is known not to land.
SELECT l.objective_id, l.opened_at, count(*) OVER () AS all_of_them
FROM landings l JOIN objectives o ON o.objective_id = l.objective_id
WHERE l.open AND l.azolla_id = $1 AND l.state = 'OPEN' AND coalesce(l.fit, 'MERGES') = 'MERGES' AND l.why IS NULL
  AND o.status = 'DONE' AND NOT o.unconfirmed
ORDER BY l.opened_at, l.objective_id
LIMIT $2;
