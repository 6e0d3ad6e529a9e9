-- Stores a token; no row if its id is there already.
INSERT INTO tokens (token_id, name, role, streams, secret_hash, created_at, expires_at, revoked_at, azolla_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (token_id) DO NOTHING
