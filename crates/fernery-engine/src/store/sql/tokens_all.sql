-- All tokens, oldest first.
SELECT token_id, name, role, streams, secret_hash, created_at, expires_at, revoked_at, azolla_id
FROM tokens ORDER BY created_at, token_id;
