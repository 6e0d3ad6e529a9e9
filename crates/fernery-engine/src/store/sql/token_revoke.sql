-- Revokes a token; the first revocation stands. No row if it is unknown.
UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE token_id = $1
RETURNING token_id;
