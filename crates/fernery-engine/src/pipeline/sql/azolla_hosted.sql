-- A process says that it hosts it.
UPDATE azollas SET hosted_at = $2 WHERE azolla_id = $1
RETURNING azolla_id;
