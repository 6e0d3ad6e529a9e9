-- Entries whose seal and place in the queue are both gone.
SELECT j.entry_id FROM journal j
LEFT JOIN seals s ON s.entry_id = j.entry_id
LEFT JOIN unsealed u ON u.entry_id = j.entry_id
WHERE s.entry_id IS NULL AND u.entry_id IS NULL
ORDER BY j.entry_id
LIMIT 1;
