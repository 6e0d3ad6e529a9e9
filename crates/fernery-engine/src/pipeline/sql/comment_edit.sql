-- Another text for a comment that stands.
UPDATE comments SET text = $2, updated_at = $3 WHERE comment_id = $1 AND deleted_at IS NULL RETURNING comment_id;
