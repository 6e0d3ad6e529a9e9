-- How many comments stand on a run. There are at most COMMENTS_MAX.
SELECT count(*) AS comments FROM comments WHERE run_id = $1 AND deleted_at IS NULL;
