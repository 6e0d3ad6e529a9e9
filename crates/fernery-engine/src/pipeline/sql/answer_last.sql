-- The last of the answers and reopenings of one objective: an answer counts until a person reopens the objective. A rework that
-- the blueprint lets happen by itself is written by `fernery`, and is no person.
SELECT record_id, objective_id, kind, digest, shown, who, note, created_at FROM decisions
WHERE objective_id = $1 AND (kind = 'ANSWER' OR (kind = 'REOPEN' AND who <> 'fernery'))
ORDER BY created_at DESC, record_id DESC LIMIT 1;
