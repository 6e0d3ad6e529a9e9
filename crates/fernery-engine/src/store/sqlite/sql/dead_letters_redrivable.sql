-- Dead jobs that match and whose unique key nobody else has, oldest id first.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
SELECT d.job_id
FROM dead_letters d JOIN jobs j ON j.job_id = d.job_id
WHERE d.stream NOT GLOB 'diazotroph:*' AND (?1 IS NULL OR d.stream = ?1) AND (?2 IS NULL OR d.code = ?2) AND (?3 IS NULL OR d.buried_at < ?3)
  AND (?4 IS NULL OR d.job_id IN (SELECT unhex(value) FROM json_each(?4)))
  AND (j.unique_key IS NULL OR NOT EXISTS (SELECT 1 FROM unique_keys k WHERE k.key = j.unique_key))
ORDER BY d.job_id
LIMIT ?5
