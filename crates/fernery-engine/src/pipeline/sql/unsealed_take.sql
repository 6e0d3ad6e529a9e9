-- Entries that are not chained yet, in the order of their ids. From the few that wait to the journal, never the other way:
-- a join of the two as they are is planned, while both are small, to go through all that was ever written.
SELECT j.entry_id, j.created_at, j.actor, j.act, j.subject, j.why
FROM (SELECT entry_id FROM unsealed ORDER BY entry_id LIMIT $1) u JOIN journal j ON j.entry_id = u.entry_id
ORDER BY u.entry_id;
