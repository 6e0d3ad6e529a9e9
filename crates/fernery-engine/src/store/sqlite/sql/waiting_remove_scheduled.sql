-- Takes a scheduled job out; answers its version. No row: it is not there.
DELETE FROM scheduled WHERE job_id = ?1 RETURNING claim_version
