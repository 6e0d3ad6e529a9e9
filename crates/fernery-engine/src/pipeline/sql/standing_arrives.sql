-- A standing objective is here since its azolla is; it stands since it stood elsewhere.
UPDATE objectives SET created_at = $3, updated_at = $4
WHERE objective_id = $1 AND azolla_id = $2 AND objective_type = 'STANDING'
RETURNING objective_id;
