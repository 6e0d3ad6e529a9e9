-- The comments that stand on a run, by file and line.
SELECT comment_id, run_id, path, side, first_line, last_line, text, author, created_at, updated_at, deleted_at
FROM comments WHERE run_id = $1 AND deleted_at IS NULL
ORDER BY path, first_line, comment_id;
