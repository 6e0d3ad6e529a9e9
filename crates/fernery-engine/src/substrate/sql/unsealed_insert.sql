INSERT INTO unsealed (entry_id) VALUES ($1)
RETURNING entry_id;
