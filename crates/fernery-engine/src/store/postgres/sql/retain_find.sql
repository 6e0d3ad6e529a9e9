-- Up to $2 jobs that finished longer ago than $1 milliseconds. A workorder's job is kept for good, so it is left out before
-- the limit counts: else those that pile up at the old end would be all that is ever found.
WITH cutoff AS MATERIALIZED (
    SELECT fernery.fernery_now() - $1::bigint * interval '1 millisecond' AS at
)
SELECT old.job_id FROM (
    (SELECT job_id FROM fernery.jobs
     WHERE ended_at < (SELECT at FROM cutoff) AND stream NOT LIKE 'diazotroph:%' LIMIT $2)
    UNION ALL
    (SELECT a.job_id FROM fernery.attempts a
     CROSS JOIN LATERAL (SELECT stream FROM fernery.jobs WHERE job_id = a.job_id LIMIT 1) j
     WHERE a.finished_at < (SELECT at FROM cutoff) AND a.outcome = 'SUCCEEDED' AND j.stream NOT LIKE 'diazotroph:%'
     LIMIT $2)
) old
LIMIT $2;
