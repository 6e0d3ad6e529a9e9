-- Puts something in sight again; no row if it was.
DELETE FROM snoozes WHERE kind = $1 AND subject_id = $2 RETURNING subject_id;
