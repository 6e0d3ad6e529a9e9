-- Lets the held lines of an azolla come again. A time that passed meanwhile is made up for once.
UPDATE recurrences SET held = false WHERE azolla_id = $1 AND stopped_at IS NULL AND held
RETURNING recurrence_id;
