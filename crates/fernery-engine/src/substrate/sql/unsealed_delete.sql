DELETE FROM unsealed WHERE entry_id = $1
RETURNING entry_id;
