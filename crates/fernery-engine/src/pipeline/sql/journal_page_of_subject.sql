-- A page of the journal about one thing, newest first, below the place ($1, $2), with seals as far as it is sealed.
SELECT j.entry_id, j.created_at, j.actor, j.act, j.subject, j.why, s.place, s.hash
FROM journal j LEFT JOIN seals s ON s.entry_id = j.entry_id
WHERE j.subject = $4 AND (j.created_at, j.entry_id) < ($1, $2)
ORDER BY j.created_at DESC, j.entry_id DESC
LIMIT $3;
