-- Entries that are not chained yet, in the order of their ids.
SELECT j.entry_id, j.created_at, j.actor, j.act, j.subject, j.why
FROM unsealed u JOIN journal j ON j.entry_id = u.entry_id
ORDER BY u.entry_id
LIMIT $1;
