-- What was done to one objective besides decisions, the newest 200, oldest first: changed, blocked, unblocked, cancelled; and what
-- became of its merges.
SELECT entry_id, created_at, actor, act, subject, why FROM (
    SELECT entry_id, created_at, actor, act, subject, why FROM journal
    WHERE subject = $1 AND act IN ('edited', 'blocked', 'unblocked', 'cancelled', 'landed', 'not_landed')
    ORDER BY created_at DESC, entry_id DESC LIMIT 200
) AS newest ORDER BY created_at, entry_id;
