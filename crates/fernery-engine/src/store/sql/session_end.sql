-- Ends a session; no row if there is none with this id.
DELETE FROM sign_ins WHERE sign_in_id = $1 AND kind = 'SESSION'
RETURNING sign_in_id;
