-- Up to $2 jobs that finished longer ago than $1 milliseconds.
WITH cutoff AS MATERIALIZED (
    SELECT fernery.fernery_now() - $1::bigint * interval '1 millisecond' AS at
)
SELECT old.job_id FROM (
    (SELECT job_id FROM fernery.jobs WHERE ended_at < (SELECT at FROM cutoff) LIMIT $2)
    UNION ALL
    (SELECT job_id FROM fernery.attempts
     WHERE finished_at < (SELECT at FROM cutoff) AND outcome = 'SUCCEEDED' LIMIT $2)
) old
CROSS JOIN LATERAL (SELECT stream FROM fernery.jobs WHERE job_id = old.job_id LIMIT 1) j
WHERE j.stream NOT LIKE 'diazotroph:%'
LIMIT $2;
