-- A new comment.
INSERT INTO comments (comment_id, run_id, path, side, first_line, last_line, text, author, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
RETURNING comment_id;
