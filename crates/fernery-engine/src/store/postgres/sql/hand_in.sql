-- Ends a job that waits with the result of somebody who has done its work: as a claim and a report in one. One row if it did.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), taken AS (
    DELETE FROM fernery.ready r
    USING fernery.jobs j
    WHERE j.job_id = $1 AND r.stream = j.stream AND r.seq = j.seq AND r.job_id = j.job_id
    RETURNING r.job_id, r.stream, r.claim_version + 2 AS claim_version, r.attempt_no + 1 AS attempt_no
), closed AS (
    INSERT INTO fernery.attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at,
                                  outcome, status, claim_version, result)
    SELECT t.job_id, t.attempt_no, $2, $3, $4, clock.now, clock.now, 'SUCCEEDED', 'SUCCEEDED', t.claim_version, $5
    FROM taken t, clock
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, succeeded) SELECT stream, -1, 1 FROM taken
)
SELECT taken.claim_version, clock.now, taken.stream FROM taken, clock;
