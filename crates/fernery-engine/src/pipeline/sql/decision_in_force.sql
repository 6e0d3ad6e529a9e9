-- The decision that approves an objective.
SELECT d.record_id, d.objective_id, d.kind, d.digest, d.shown, d.who, d.note, d.created_at
FROM objectives o JOIN decisions d ON d.record_id = o.approval WHERE o.objective_id = $1;
