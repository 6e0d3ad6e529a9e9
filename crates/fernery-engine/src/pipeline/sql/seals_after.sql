-- The seals that follow place $1, each with its entry, or with NULLs where the entry is gone.
SELECT s.place, s.entry_id, s.hash, j.created_at, j.actor, j.act, j.subject, j.why
FROM seals s LEFT JOIN journal j ON j.entry_id = s.entry_id
WHERE s.place > $1
ORDER BY s.place
LIMIT $2;
