-- A part of the journal above a place, each entry with whether its seal and its place in the queue are both gone.
SELECT j.entry_id, s.entry_id IS NULL AND u.entry_id IS NULL AS is_stray
FROM (SELECT entry_id FROM journal WHERE entry_id > $1 ORDER BY entry_id LIMIT $2) j
LEFT JOIN seals s ON s.entry_id = j.entry_id
LEFT JOIN unsealed u ON u.entry_id = j.entry_id
ORDER BY j.entry_id;
