-- Dead jobs that match and whose unique key nobody else has, oldest id first.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
SELECT d.job_id
FROM fernery.dead_letters d
CROSS JOIN LATERAL (SELECT unique_key FROM fernery.jobs WHERE job_id = d.job_id LIMIT 1) j
WHERE d.stream NOT LIKE 'diazotroph:%' AND ($1::text IS NULL OR d.stream = $1) AND ($2::text IS NULL OR d.code = $2)
  AND ($3::timestamptz IS NULL OR d.buried_at < $3) AND ($4::uuid[] IS NULL OR d.job_id = ANY ($4))
  AND (j.unique_key IS NULL OR NOT EXISTS (SELECT FROM fernery.unique_keys k WHERE k.key = j.unique_key))
ORDER BY d.job_id
LIMIT $5;
