-- Spends a link: of all who come with its secret before $3, exactly one gets its token; no row for the others.
DELETE FROM sign_ins WHERE sign_in_id = $1 AND kind = 'LINK' AND secret_hash = $2 AND expires_at > $3
RETURNING token_id;
