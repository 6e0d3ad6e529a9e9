-- Writes what a step of a bulk act has done, or its end. Only under bulk_act_lock or bulk_act_take, and never after its end.
UPDATE bulk_acts SET state = $2, done = $3, refused = $4, done_walk = $5, walk = $6, updated_at = $7, ended_at = $8, trouble = NULL
WHERE act_id = $1 AND state = 'RUNNING'
RETURNING act_id;
