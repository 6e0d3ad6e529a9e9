-- The last of the answers and reopenings of one objective: an answer counts until a person reopens the objective.
SELECT record_id, objective_id, kind, digest, shown, who, note, created_at FROM decisions
WHERE objective_id = $1 AND kind IN ('ANSWER', 'REOPEN')
ORDER BY created_at DESC, record_id DESC LIMIT 1;
