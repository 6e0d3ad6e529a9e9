-- Writes what a step changed. Only under landing_lock.
UPDATE landings
SET tip = $2, fit = $3, why = $4, files = $5, state = $6, open = $7, wanted = $8, record_id = $9, wanted_at = $10,
    tries = $11, not_before = $12, moved_from = $13, moved_to = $14, remarks = $15, reworks = $16, updated_at = $17
WHERE objective_id = $1
RETURNING objective_id;
