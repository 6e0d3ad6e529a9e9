-- Says that a line was captured for the time $2 and comes again at $3; no row if somebody else did that, or it was stopped or is held.
UPDATE recurrences SET next_at = $3 WHERE recurrence_id = $1 AND next_at = $2 AND stopped_at IS NULL AND NOT held
RETURNING recurrence_id;
