-- Stops a line; no row if it was stopped before.
UPDATE recurrences SET stopped_at = $2 WHERE recurrence_id = $1 AND stopped_at IS NULL RETURNING recurrence_id;
