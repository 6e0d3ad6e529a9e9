-- Forgets snoozes of one kind that passed by $2, up to the limit, the earliest first.
DELETE FROM snoozes
WHERE (kind, subject_id) IN (SELECT kind, subject_id FROM snoozes WHERE kind = $1 AND until <= $2 ORDER BY until, subject_id LIMIT $3)
RETURNING subject_id;
