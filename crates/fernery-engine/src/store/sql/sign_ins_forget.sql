-- Forgets links and sessions that ended before $1.
DELETE FROM sign_ins WHERE expires_at < $1
RETURNING sign_in_id;
