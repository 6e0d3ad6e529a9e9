-- How many dead jobs match; a workorder's belongs to its objective and is neither redriven nor purged.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
SELECT count(*)
FROM fernery.dead_letters d
WHERE d.stream NOT LIKE 'diazotroph:%' AND ($1::text IS NULL OR d.stream = $1) AND ($2::text IS NULL OR d.code = $2)
  AND ($3::timestamptz IS NULL OR d.buried_at < $3) AND ($4::uuid[] IS NULL OR d.job_id = ANY ($4));
