-- What each message is worth now: 'waiting' if its job waits under it, 'held' if it is the current lease's own, 'stale' if its
-- job went on without it, 'unknown' if there is no such job. One snapshot, so a job that moves meanwhile is seen once.
SELECT h.n, CASE
    WHEN EXISTS (SELECT FROM fernery.ready r WHERE r.stream = h.stream AND r.seq = h.seq AND r.job_id = h.job_id
                 AND r.claim_version = h.version) THEN 'waiting'
    WHEN EXISTS (SELECT FROM fernery.leases l WHERE l.resource_id = h.job_id AND l.stream = h.stream
                 AND l.message_ms = h.message_ms AND l.message_n = h.message_n) THEN 'held'
    WHEN EXISTS (SELECT FROM fernery.jobs j WHERE j.job_id = h.job_id) THEN 'stale'
    ELSE 'unknown'
END
FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[])
     WITH ORDINALITY AS h(stream, seq, job_id, version, message_ms, message_n, n)
ORDER BY h.n;
