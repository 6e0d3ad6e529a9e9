-- How many other files of a ticket a reviewer has viewed. There are at most VIEWED_FILES_MAX.
SELECT count(*) AS files FROM viewed_files WHERE objective_id = $1 AND reviewer = $2 AND path <> $3;
