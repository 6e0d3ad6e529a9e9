-- Writes what a person edited or decided; no row unless the candidate is still WAITING.
UPDATE candidates SET document = $2, status = $3, objective_id = $4, merged_into = $5, updated_at = $6, urgency = $7,
    due_at = $8
WHERE candidate_id = $1 AND status = 'WAITING'
RETURNING candidate_id;
