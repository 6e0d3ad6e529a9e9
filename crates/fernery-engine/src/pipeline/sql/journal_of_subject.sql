-- All entries of the journal about one thing, oldest first.
SELECT entry_id, created_at, actor, act, subject, why FROM journal WHERE subject = $1 ORDER BY created_at, entry_id;
