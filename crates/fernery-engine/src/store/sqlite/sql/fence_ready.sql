-- After a restore: versions go on from where nobody can have been since the backup.
UPDATE ready SET claim_version = claim_version + ?1
