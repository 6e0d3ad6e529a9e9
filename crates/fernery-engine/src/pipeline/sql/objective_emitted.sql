-- Remembers that TICKET_READY was emitted for entry $2 into TODO; no row if it was remembered before.
UPDATE objectives SET emitted = $2 WHERE objective_id = $1 AND emitted < $2
RETURNING objective_id;
