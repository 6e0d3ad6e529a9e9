-- The newest cancellings of one objective, the last one first.
SELECT entry_id, created_at, actor, act, subject, why FROM journal
WHERE subject = $1 AND act = 'cancelled' ORDER BY created_at DESC, entry_id DESC LIMIT $2;
