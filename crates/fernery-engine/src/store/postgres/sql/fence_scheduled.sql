-- After a restore: versions of $3 rows from the id $2 on go on from where nobody can have been since the backup.
WITH batch AS MATERIALIZED (
    SELECT job_id FROM fernery.scheduled WHERE job_id >= $2 ORDER BY job_id LIMIT $3 FOR UPDATE
), raised AS (
    UPDATE fernery.scheduled t SET claim_version = t.claim_version + $1 FROM batch b WHERE t.job_id = b.job_id
)
SELECT job_id FROM batch ORDER BY job_id DESC LIMIT 1;
