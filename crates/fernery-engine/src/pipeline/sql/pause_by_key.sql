-- Whether there is a pause about this.
SELECT pause_key FROM pauses WHERE pause_key = $1;
