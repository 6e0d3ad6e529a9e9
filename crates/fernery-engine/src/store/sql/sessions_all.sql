-- The newest $2 sessions that have not ended before $1.
SELECT sign_in_id, token_id, secret_hash, created_at, expires_at
FROM sign_ins WHERE kind = 'SESSION' AND expires_at > $1
ORDER BY created_at DESC, sign_in_id LIMIT $2;
