-- Writes the clock and the deadline of a watched objective, new or in place of the row that is there.
INSERT INTO deadlines (azolla_id, source_azolla_id, objective_id, urgency, due_at, since, deadline, told, document, server)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (azolla_id, source_azolla_id, objective_id)
DO UPDATE SET urgency = $4, due_at = $5, since = $6, deadline = $7, told = $8, document = $9, server = $10
RETURNING objective_id;
