-- What was put out of sight, below the place ($1, $2).
SELECT kind, subject_id, until FROM snoozes WHERE (kind, subject_id) < ($1, $2)
ORDER BY kind DESC, subject_id DESC LIMIT $3;
