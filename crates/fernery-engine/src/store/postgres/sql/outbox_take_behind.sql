-- As outbox_take, without the jobs that do not wait under that message any more. Messages about buried jobs are about the past
-- anyway.
SELECT o.id, o.stream, n.job_ids, n.places, n.versions
FROM (
    SELECT id, stream, job_ids, places, versions FROM fernery.outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
) o
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(u.job_id ORDER BY u.n), '{}') AS job_ids,
           coalesce(array_agg(u.place ORDER BY u.n), '{}') AS places,
           coalesce(array_agg(u.version ORDER BY u.n), '{}') AS versions
    FROM unnest(o.job_ids, o.places, o.versions) WITH ORDINALITY AS u(job_id, place, version, n)
    LEFT JOIN LATERAL (
        SELECT true AS waits FROM fernery.ready r
        WHERE r.stream = o.stream AND r.seq = u.place AND r.job_id = u.job_id AND r.claim_version = u.version
        LIMIT 1
    ) r ON true
    WHERE r.waits OR o.stream = $2
) n
ORDER BY o.id;
