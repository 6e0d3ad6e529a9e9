-- One decision of an operator.
SELECT record_id, objective_id, kind, digest, shown, who, note, created_at FROM decisions WHERE record_id = $1;
