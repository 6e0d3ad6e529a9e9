DELETE FROM deadlines WHERE azolla_id = $1 AND source_azolla_id = $2 RETURNING objective_id;
