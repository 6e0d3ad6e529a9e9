INSERT INTO journal (entry_id, created_at, actor, act, subject, why) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING entry_id;
