-- All lines, stopped or not, below an id.
SELECT recurrence_id, azolla_id, every, text, schedule, next_at, created_at, stopped_at, held
FROM recurrences WHERE recurrence_id < $1
ORDER BY recurrence_id DESC LIMIT $2;
