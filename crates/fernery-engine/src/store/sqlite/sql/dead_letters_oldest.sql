-- Dead jobs that match, oldest id first.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
SELECT job_id, stream
FROM dead_letters
WHERE stream NOT GLOB 'diazotroph:*' AND (?1 IS NULL OR stream = ?1) AND (?2 IS NULL OR code = ?2) AND (?3 IS NULL OR buried_at < ?3)
  AND (?4 IS NULL OR job_id IN (SELECT unhex(value) FROM json_each(?4)))
ORDER BY job_id
LIMIT ?5
