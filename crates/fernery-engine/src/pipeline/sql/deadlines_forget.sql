-- Stops watching all objectives of azolla $2: azolla $1 does not read it any more.
DELETE FROM deadlines WHERE azolla_id = $1 AND source_azolla_id = $2 RETURNING objective_id;
