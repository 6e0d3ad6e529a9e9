-- One comment, also one that was taken back.
SELECT comment_id, run_id, path, side, first_line, last_line, text, author, created_at, updated_at, deleted_at
FROM comments WHERE comment_id = $1;
