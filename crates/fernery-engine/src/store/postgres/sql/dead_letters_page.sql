-- Dead jobs that match, newest id first, from $5 down.
SELECT d.job_id, d.stream, d.buried_at, d.reason, d.code
FROM fernery.dead_letters d
WHERE ($1::text IS NULL OR d.stream = $1) AND ($2::text IS NULL OR d.code = $2)
  AND ($3::timestamptz IS NULL OR d.buried_at < $3) AND ($4::uuid[] IS NULL OR d.job_id = ANY ($4))
  AND d.job_id <= $5
ORDER BY d.job_id DESC
LIMIT $6;
