-- Puts jobs back whose claimer left before it was told: as if never claimed, but for the version. Only under the token of
-- that very claim, and only while nobody cancelled or touched it otherwise.
WITH gone AS (
    DELETE FROM fernery.leases l
    USING unnest($1::uuid[], $2::bytea[]) AS i(job_id, token_hash)
    WHERE l.resource_id = ANY ($1::uuid[]) AND l.resource_id = i.job_id AND l.token_hash = i.token_hash
      AND NOT l.cancel_requested
    RETURNING l.*
), back AS (
    INSERT INTO fernery.ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
    SELECT stream, seq, resource_id, ready_at, claim_version + 1, attempt_no - 1, failed, lost, released FROM gone
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, running)
    SELECT stream, count(*), -count(*) FROM gone GROUP BY stream
)
SELECT stream FROM gone;
