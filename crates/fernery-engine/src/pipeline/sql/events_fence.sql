-- After a restore: raises all versions above any that was given out since the backup.
UPDATE events SET claim_version = claim_version + $1 WHERE NOT processed
RETURNING event_id;
