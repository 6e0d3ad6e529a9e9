-- Gives a standing objective, which its azolla has created here, the times that it had in another instance.
UPDATE objectives SET created_at = $3, updated_at = $4
WHERE objective_id = $1 AND azolla_id = $2 AND objective_type = 'STANDING'
RETURNING objective_id;
