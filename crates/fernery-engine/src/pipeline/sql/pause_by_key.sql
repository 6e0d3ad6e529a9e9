-- Whether there is a pause under this key.
SELECT pause_key FROM pauses WHERE pause_key = $1;
