-- Up to $2 jobs that ended longer ago than $1 milliseconds, dead letters than $3: never, if that is null. A workorder's job is
-- kept for good, so it is left out before the limit counts: else those that pile up at the old end would be all that is ever
-- found.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
WITH cutoff AS MATERIALIZED (
    SELECT fernery.fernery_now() - $1::bigint * interval '1 millisecond' AS finished,
           fernery.fernery_now() - $3::bigint * interval '1 millisecond' AS dead
)
SELECT old.job_id FROM (
    (SELECT job_id FROM fernery.jobs
     WHERE ended_at < (SELECT finished FROM cutoff) AND ended <> 'DEAD' AND stream NOT LIKE 'diazotroph:%' LIMIT $2)
    UNION ALL
    (SELECT job_id FROM fernery.jobs
     WHERE ended_at < (SELECT dead FROM cutoff) AND ended = 'DEAD' AND stream NOT LIKE 'diazotroph:%' LIMIT $2)
    UNION ALL
    (SELECT a.job_id FROM fernery.attempts a
     CROSS JOIN LATERAL (SELECT stream FROM fernery.jobs WHERE job_id = a.job_id LIMIT 1) j
     WHERE a.finished_at < (SELECT finished FROM cutoff) AND a.outcome = 'SUCCEEDED' AND j.stream NOT LIKE 'diazotroph:%'
     LIMIT $2)
) old
LIMIT $2;
