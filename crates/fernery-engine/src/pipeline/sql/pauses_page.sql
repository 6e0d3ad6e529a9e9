-- A page of pauses of all azollas, newest first, below the place ($1, $2).
SELECT document, pause_key FROM pauses WHERE (created_at, pause_key) < ($1, $2)
ORDER BY created_at DESC, pause_key DESC
LIMIT $3;
