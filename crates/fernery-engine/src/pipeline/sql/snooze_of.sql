-- Until when something is out of sight; no row if it is in sight at $3.
SELECT until FROM snoozes WHERE kind = $1 AND subject_id = $2 AND until > $3;
