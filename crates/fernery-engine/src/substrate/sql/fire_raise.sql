UPDATE fires SET fired_at = $2 WHERE azolla_id = $1 AND fired_at < $2 RETURNING azolla_id;
