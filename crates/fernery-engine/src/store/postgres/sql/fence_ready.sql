-- After a restore: versions of $4 jobs that wait, after the place ($2, $3), go on from where nobody can have been since the
-- backup. Rows are replaced, not updated: a claim relies on it that a ready row never moves.
WITH batch AS MATERIALIZED (
    SELECT stream, seq FROM fernery.ready WHERE (stream, seq) > ($2, $3) ORDER BY stream, seq LIMIT $4 FOR UPDATE
), gone AS (
    DELETE FROM fernery.ready r USING batch b WHERE r.stream = b.stream AND r.seq = b.seq RETURNING r.*
), back AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT stream, seq, job_id, ready_at, claim_version + $1, attempt_no, failed, lost, released FROM gone
)
SELECT stream, seq FROM batch ORDER BY stream DESC, seq DESC LIMIT 1;
