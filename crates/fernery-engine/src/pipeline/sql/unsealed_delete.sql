-- Takes an entry of the journal off the list of those without a seal; no row if it is not on it.
DELETE FROM unsealed WHERE entry_id = $1
RETURNING entry_id;
