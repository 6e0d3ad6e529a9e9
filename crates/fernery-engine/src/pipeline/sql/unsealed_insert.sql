-- Puts an entry of the journal on the list of those without a seal.
INSERT INTO unsealed (entry_id) VALUES ($1)
RETURNING entry_id;
