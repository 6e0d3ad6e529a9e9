-- Ends attempts with their results where job, attempt and token are those of the lease, and only there: the lease goes,
-- the attempt is written, the unique key is free. Items come sorted by job, so that batches lock in the same order.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), gone AS (
    DELETE FROM fernery.leases l
    USING unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::json[]) AS i(job_id, attempt_id, token_hash, result)
    -- Said twice, the second time without the join: whatever the planner believes, it reads the leases by key.
    WHERE l.resource_id = ANY ($1::uuid[])
      AND l.resource_id = i.job_id AND l.attempt_id = i.attempt_id AND l.token_hash = i.token_hash
    RETURNING l.resource_id, l.attempt_id, l.token_hash, l.owner_id, l.stream, l.started_at, l.claim_version,
              l.attempt_no, l.unique_key, i.result
), closed AS (
    INSERT INTO fernery.attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at,
                                  outcome, status, claim_version, result)
    SELECT g.resource_id, g.attempt_no, g.attempt_id, g.token_hash, g.owner_id, g.started_at, clock.now,
           'SUCCEEDED', 'SUCCEEDED', g.claim_version + 1, g.result
    FROM gone g, clock
), freed AS (
    DELETE FROM fernery.unique_keys
    WHERE key = ANY (ARRAY(SELECT unique_key FROM gone WHERE unique_key IS NOT NULL))
      AND job_id = ANY (ARRAY(SELECT resource_id FROM gone WHERE unique_key IS NOT NULL))
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, running, succeeded)
    SELECT stream, -count(*), count(*) FROM gone GROUP BY stream
)
SELECT resource_id, attempt_id, token_hash FROM gone;
