-- Jobs that died before $3, the oldest death first, after that of ($1, $2).
SELECT job_id, stream, buried_at AS at, code
FROM fernery.dead_letters
WHERE (buried_at, job_id) > ($1::timestamptz, $2::uuid) AND buried_at < $3
ORDER BY buried_at, job_id
LIMIT $4;
