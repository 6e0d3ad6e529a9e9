UPDATE events SET claim_version = $2 WHERE event_id = $1 AND claim_version < $2
RETURNING event_id;
