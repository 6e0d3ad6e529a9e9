SELECT entry_id, created_at, actor, act, subject, why FROM journal
WHERE (created_at, entry_id) < ($1, $2)
ORDER BY created_at DESC, entry_id DESC
LIMIT $3;
