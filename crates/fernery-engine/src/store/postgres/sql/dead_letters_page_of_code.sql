-- Dead jobs with error code $1, newest death first, below the place ($2, $3), each with the error of its last attempt: read off
-- the index dead_letters_of_code, however many others are dead.
SELECT d.job_id, d.stream, d.buried_at, d.reason, d.code,
       (SELECT a.error::text FROM fernery.attempts a WHERE a.job_id = d.job_id ORDER BY a.attempt_no DESC LIMIT 1) AS error
FROM (SELECT job_id, stream, buried_at, reason, code
      FROM fernery.dead_letters
      WHERE code = $1 AND (buried_at, job_id) < ($2, $3)
      ORDER BY buried_at DESC, job_id DESC
      LIMIT $4) d
ORDER BY d.buried_at DESC, d.job_id DESC;
