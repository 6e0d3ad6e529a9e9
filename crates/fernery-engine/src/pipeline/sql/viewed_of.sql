-- What a reviewer has viewed of a ticket. There are at most VIEWED_FILES_MAX.
SELECT path, content FROM viewed_files WHERE objective_id = $1 AND reviewer = $2 ORDER BY path;
