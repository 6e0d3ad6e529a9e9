-- Keeps a link or a session; no row if its id is taken.
INSERT INTO sign_ins (sign_in_id, kind, token_id, secret_hash, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (sign_in_id) DO NOTHING
RETURNING sign_in_id;
