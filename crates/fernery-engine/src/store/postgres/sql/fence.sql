-- After a restore: every version goes on from where nobody can have been since the backup.
WITH waiting AS (
    UPDATE fernery.ready SET claim_version = claim_version + $1
), later AS (
    UPDATE fernery.scheduled SET claim_version = claim_version + $1
), held AS (
    UPDATE fernery.leases SET claim_version = claim_version + $1
)
UPDATE fernery.jobs j
SET claim_version = $1 + greatest(j.claim_version, coalesce(
    (SELECT claim_version FROM fernery.attempts WHERE job_id = j.job_id ORDER BY attempt_no DESC LIMIT 1), 0))
WHERE ended IS NOT NULL;
