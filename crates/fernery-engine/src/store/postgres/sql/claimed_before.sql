-- What a claim whose reply was lost took after all, by the attempt ids that were made before it.
SELECT array_position($1::uuid[], l.attempt_id)::bigint, l.resource_id, l.stream, l.seq, l.ready_at, j.payload,
       l.attempt_no, l.max_attempts, l.expires_at, l.timeout_at, l.started_at, l.message_ms, l.message_n
FROM fernery.leases l
CROSS JOIN LATERAL (SELECT payload FROM fernery.jobs WHERE job_id = l.resource_id LIMIT 1) j
WHERE l.attempt_id = ANY ($1::uuid[])
ORDER BY 1;
