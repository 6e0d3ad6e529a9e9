-- One line, stopped or not, locked until the transaction ends.
SELECT recurrence_id, azolla_id, every, text, schedule, next_at, created_at, stopped_at, held
FROM recurrences WHERE recurrence_id = $1 FOR UPDATE;
