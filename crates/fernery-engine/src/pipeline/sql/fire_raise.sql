-- Says that a schedule was looked at up to $2; no row if somebody else has got as far.
UPDATE fires SET fired_at = $2 WHERE azolla_id = $1 AND fired_at < $2 RETURNING azolla_id;
