-- After a restore: the versions of ended jobs, which may start over, of $3 of them from the id $2 on.
WITH batch AS MATERIALIZED (
    SELECT job_id FROM fernery.jobs WHERE job_id >= $2 AND ended IS NOT NULL ORDER BY job_id LIMIT $3 FOR UPDATE
), known AS MATERIALIZED (
    SELECT b.job_id, coalesce(a.claim_version, 0) AS claim_version
    FROM batch b
    LEFT JOIN LATERAL (
        SELECT claim_version FROM fernery.attempts WHERE job_id = b.job_id ORDER BY attempt_no DESC LIMIT 1
    ) a ON true
), raised AS (
    UPDATE fernery.jobs j SET claim_version = $1 + greatest(j.claim_version, k.claim_version)
    FROM known k WHERE j.job_id = k.job_id
)
SELECT job_id FROM batch ORDER BY job_id DESC LIMIT 1;
