-- Marks one deadline as told; no row if it was told before or has changed since it was read.
UPDATE deadlines SET told = true WHERE azolla_id = $1 AND source_azolla_id = $2 AND objective_id = $3 AND deadline = $4 AND NOT told
RETURNING objective_id;
