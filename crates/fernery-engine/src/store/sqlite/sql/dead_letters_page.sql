-- Dead jobs that match, newest death first, below the place (?5, ?6), each with the error of its last attempt.
SELECT d.job_id, d.stream, d.buried_at, d.reason, d.code,
       (SELECT a.error FROM attempts a WHERE a.job_id = d.job_id ORDER BY a.attempt_no DESC LIMIT 1) AS error
FROM (SELECT job_id, stream, buried_at, reason, code
      FROM dead_letters
      WHERE (?1 IS NULL OR stream = ?1) AND (?2 IS NULL OR code = ?2) AND (?3 IS NULL OR buried_at < ?3)
        AND (?4 IS NULL OR job_id IN (SELECT unhex(value) FROM json_each(?4)))
        AND (buried_at, job_id) < (?5, ?6)
      ORDER BY buried_at DESC, job_id DESC
      LIMIT ?7) d
ORDER BY d.buried_at DESC, d.job_id DESC
