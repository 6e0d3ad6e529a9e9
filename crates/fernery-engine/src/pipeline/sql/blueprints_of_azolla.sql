-- The digests of the blueprints of an azolla, newest first.
SELECT blueprint FROM blueprints WHERE azolla_id = $1 ORDER BY created_at DESC, blueprint LIMIT $2;
