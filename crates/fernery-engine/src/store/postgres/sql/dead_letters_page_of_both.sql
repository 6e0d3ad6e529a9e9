-- Dead jobs of stream $1 with error code $2, newest death first, below the place ($3, $4), each with the error of its last attempt: read off
-- the index dead_letters_of_both, however many others are dead.
SELECT d.job_id, d.stream, d.buried_at, d.reason, d.code,
       (SELECT a.error::text FROM fernery.attempts a WHERE a.job_id = d.job_id ORDER BY a.attempt_no DESC LIMIT 1) AS error
FROM (SELECT job_id, stream, buried_at, reason, code
      FROM fernery.dead_letters
      WHERE stream = $1 AND code = $2 AND (buried_at, job_id) < ($3, $4)
      ORDER BY buried_at DESC, job_id DESC
      LIMIT $5) d
ORDER BY d.buried_at DESC, d.job_id DESC;
