-- Rows of the inbox that cannot be jobs are kept aside with the reason.
WITH refused AS (
    SELECT * FROM unnest($1::bigint[], $2::text[]) AS r(inbox_id, reason)
), gone AS (
    DELETE FROM fernery.inbox WHERE inbox_id = ANY ($1::bigint[]) RETURNING *
)
INSERT INTO fernery.inbox_refused (inbox_id, stream, payload, job_id, max_attempts, run_at, unique_key, timeout_seconds,
                                   inserted_at, reason)
SELECT g.inbox_id, g.stream, g.payload, g.job_id, g.max_attempts, g.run_at, g.unique_key, g.timeout_seconds,
       g.inserted_at, r.reason
FROM gone g JOIN refused r ON r.inbox_id = g.inbox_id;
