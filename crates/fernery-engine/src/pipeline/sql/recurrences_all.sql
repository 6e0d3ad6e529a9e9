-- Lines of an azolla that come again, the next first.
SELECT recurrence_id, azolla_id, every, text, schedule, next_at, created_at, stopped_at, held
FROM recurrences WHERE azolla_id = $1 AND stopped_at IS NULL
ORDER BY next_at, recurrence_id LIMIT $2;
