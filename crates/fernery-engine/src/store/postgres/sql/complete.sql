-- Ends attempts with their results where job, attempt and token are those of the lease, and only there: the lease goes,
-- the attempt is written, the unique key is free. Items come sorted by job, so that batches lock in the same order.
-- Streams of workorders: the rule is StreamName::is_workorders in fernery-core.
WITH proven AS MATERIALIZED (
    -- One lookup by key for each item, whatever the planner believes of the table: it is empty one minute and full the
    -- next. The lock makes what is read here what is deleted below.
    SELECT l.*, i.result
    FROM unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::json[]) AS i(job_id, attempt_id, token_hash, result)
    CROSS JOIN LATERAL (
        SELECT * FROM fernery.leases
        WHERE resource_id = i.job_id AND attempt_id = i.attempt_id AND token_hash = i.token_hash
          AND ($5 OR stream NOT LIKE 'diazotroph:%')
        LIMIT 1 FOR UPDATE
    ) l
), clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), gone AS (
    DELETE FROM fernery.leases WHERE resource_id = ANY (ARRAY(SELECT resource_id FROM proven))
), closed AS (
    INSERT INTO fernery.attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at,
                                  outcome, status, claim_version, result)
    SELECT p.resource_id, p.attempt_no, p.attempt_id, p.token_hash, p.owner_id, p.started_at, clock.now,
           'SUCCEEDED', 'SUCCEEDED', p.claim_version + 1, p.result
    FROM clock, proven p
), freed AS (
    DELETE FROM fernery.unique_keys
    WHERE key = ANY (ARRAY(SELECT unique_key FROM proven WHERE unique_key IS NOT NULL))
      AND job_id = ANY (ARRAY(SELECT resource_id FROM proven WHERE unique_key IS NOT NULL))
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, running, succeeded)
    SELECT stream, -count(*), count(*) FROM proven GROUP BY stream
)
SELECT p.resource_id, p.attempt_id, p.token_hash, p.stream, p.message_ms, p.message_n, p.started_at, clock.now
FROM clock, proven p;
