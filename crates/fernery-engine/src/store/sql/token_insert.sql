-- Stores a token. The same token again is left as it is and answered as stored; no row if its id is that of another one.
INSERT INTO tokens (token_id, name, role, streams, secret_hash, created_at, expires_at, revoked_at, azolla_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (token_id) DO UPDATE SET name = tokens.name WHERE tokens.secret_hash = excluded.secret_hash
RETURNING token_id;
