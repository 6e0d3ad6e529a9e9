-- All decisions about one objective, oldest first.
SELECT record_id, objective_id, kind, digest, shown, who, note, created_at FROM decisions
WHERE objective_id = $1 ORDER BY created_at, record_id;
