-- Takes a comment back: its text is gone, and its id is never used again.
UPDATE comments SET text = '', deleted_at = $2 WHERE comment_id = $1 AND deleted_at IS NULL RETURNING comment_id;
