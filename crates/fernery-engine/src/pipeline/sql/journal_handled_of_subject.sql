-- What was done to one objective besides decisions, oldest first: changed, blocked, unblocked, cancelled.
SELECT entry_id, created_at, actor, act, subject, why FROM journal
WHERE subject = $1 AND act IN ('edited', 'blocked', 'unblocked', 'cancelled') ORDER BY created_at, entry_id;
