-- Ends jobs that wait, ready or scheduled: their places go, their ends are marked, their unique keys are free. One row each.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), unready AS (
    DELETE FROM fernery.ready r
    USING fernery.jobs j
    WHERE j.job_id = ANY ($1::uuid[]) AND r.stream = j.stream AND r.seq = j.seq AND r.job_id = j.job_id
    RETURNING r.job_id, r.stream, r.claim_version
), unscheduled AS (
    DELETE FROM fernery.scheduled WHERE job_id = ANY ($1::uuid[]) RETURNING job_id, stream, claim_version
), gone AS (
    SELECT *, 1 AS ready, 0 AS scheduled FROM unready
    UNION ALL
    SELECT *, 0, 1 FROM unscheduled
), marked AS (
    UPDATE fernery.jobs j
    SET ended = 'CANCELLED', ended_at = clock.now, claim_version = g.claim_version + 1
    FROM gone g, clock
    WHERE j.job_id = ANY ($1::uuid[]) AND j.job_id = g.job_id
), freed AS (
    DELETE FROM fernery.unique_keys k
    USING gone g, fernery.jobs j
    WHERE g.job_id = j.job_id AND k.key = j.unique_key AND k.job_id = j.job_id
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, scheduled, cancelled)
    SELECT stream, -sum(ready), -sum(scheduled), count(*) FROM gone GROUP BY stream
)
SELECT gone.stream, gone.claim_version + 1, clock.now, gone.job_id FROM gone, clock;
