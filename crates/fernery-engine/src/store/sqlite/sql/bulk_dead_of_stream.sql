-- Jobs of the stream ?5 that died before ?3, the oldest death first, after that of (?1, ?2).
SELECT job_id, stream, buried_at AS at, code
FROM dead_letters
WHERE stream = ?5 AND (buried_at, job_id) > (?1, ?2) AND buried_at < ?3
ORDER BY buried_at, job_id
LIMIT ?4
