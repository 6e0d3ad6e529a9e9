-- Ends every session of a token, and takes back its links.
DELETE FROM sign_ins WHERE token_id = $1
RETURNING sign_in_id;
