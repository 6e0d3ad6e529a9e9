-- What an azolla was made from, the newest first.
SELECT blueprint FROM blueprints WHERE azolla_id = $1 ORDER BY created_at DESC, blueprint LIMIT $2;
