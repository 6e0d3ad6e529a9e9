-- An entry of another instance, with its own id; this instance's sealer chains it anew.
INSERT INTO journal (entry_id, created_at, actor, act, subject, why) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (entry_id) DO NOTHING
RETURNING entry_id;
