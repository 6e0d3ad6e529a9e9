-- What each message is worth now: 'waiting' if its job waits under it, 'held' if it is the current lease's own, 'stale' if its
-- job went on without it, 'unknown' if there is no such job. One snapshot, so a job that moves meanwhile is seen once. Each is
-- looked up by its key, and no further than needed: a bare EXISTS may read a whole table into a hash instead.
SELECT h.n, CASE WHEN r.found THEN 'waiting' WHEN l.found THEN 'held' WHEN j.found THEN 'stale' ELSE 'unknown' END
FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[])
     WITH ORDINALITY AS h(stream, seq, job_id, version, message_ms, message_n, n)
LEFT JOIN LATERAL (
    SELECT true AS found FROM fernery.ready r
    WHERE r.stream = h.stream AND r.seq = h.seq AND r.job_id = h.job_id AND r.claim_version = h.version
    LIMIT 1
) r ON true
LEFT JOIN LATERAL (
    SELECT true AS found FROM fernery.leases l
    WHERE r.found IS NULL AND l.resource_id = h.job_id AND l.stream = h.stream
      AND l.message_ms = h.message_ms AND l.message_n = h.message_n
    LIMIT 1
) l ON true
LEFT JOIN LATERAL (
    SELECT true AS found FROM fernery.jobs j
    WHERE r.found IS NULL AND l.found IS NULL AND j.job_id = h.job_id
    LIMIT 1
) j ON true
ORDER BY h.n;
