-- Writes an entry of the journal. An id that is here already is an error. Entries are never changed.
INSERT INTO journal (entry_id, created_at, actor, act, subject, why) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING entry_id;
