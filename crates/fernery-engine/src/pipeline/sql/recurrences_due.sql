-- Lines of an azolla whose time has come and that are not held, the longest overdue first.
SELECT recurrence_id, azolla_id, every, text, schedule, next_at, created_at, stopped_at, held
FROM recurrences WHERE azolla_id = $1 AND stopped_at IS NULL AND NOT held AND next_at <= $2
ORDER BY next_at, recurrence_id LIMIT $3;
