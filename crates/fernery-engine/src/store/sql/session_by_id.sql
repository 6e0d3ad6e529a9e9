-- A session that has not ended before $2; no row for a link.
SELECT sign_in_id, token_id, secret_hash, created_at, expires_at
FROM sign_ins WHERE sign_in_id = $1 AND kind = 'SESSION' AND expires_at > $2;
