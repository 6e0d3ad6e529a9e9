-- Takes a token back; the first time stands. No row if it is unknown.
UPDATE fernery.tokens SET revoked_at = coalesce(revoked_at, fernery.fernery_now())
WHERE token_id = $1
RETURNING token_id;
