-- A reviewer has not viewed a file after all; no row if they had not said so.
DELETE FROM viewed_files WHERE objective_id = $1 AND reviewer = $2 AND path = $3 RETURNING path;
