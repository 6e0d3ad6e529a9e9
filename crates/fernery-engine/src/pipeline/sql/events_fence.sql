-- After a restore: versions go on from where nobody can have been since the backup.
UPDATE events SET claim_version = claim_version + $1 WHERE NOT processed
RETURNING event_id;
