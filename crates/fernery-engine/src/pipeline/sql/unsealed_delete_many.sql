-- As unsealed_delete, for 16 entries at once.
DELETE FROM unsealed WHERE entry_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
RETURNING entry_id;
