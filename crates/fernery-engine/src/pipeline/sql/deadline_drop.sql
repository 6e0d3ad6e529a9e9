-- Stops watching one objective: it is closed.
DELETE FROM deadlines WHERE azolla_id = $1 AND source_azolla_id = $2 AND objective_id = $3 RETURNING objective_id;
