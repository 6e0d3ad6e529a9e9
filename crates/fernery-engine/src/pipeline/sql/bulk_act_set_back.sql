-- Puts a bulk act whose step failed behind the others, and says why.
UPDATE bulk_acts SET updated_at = $2, trouble = $3 WHERE act_id = $1 AND state = 'RUNNING'
RETURNING act_id;
