-- The pause under this key, if there is one.
SELECT document, pause_key FROM pauses WHERE pause_key = $1;
