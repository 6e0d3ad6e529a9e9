-- What became of attempts: open (no outcome), or closed and how. One row for each that there is.
SELECT i.n, l.attempt_id IS NOT NULL AS open, a.token_hash, a.outcome, a.status
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS i(job_id, attempt_id, n)
LEFT JOIN LATERAL (
    SELECT attempt_id FROM fernery.leases WHERE resource_id = i.job_id AND attempt_id = i.attempt_id LIMIT 1
) l ON true
LEFT JOIN LATERAL (
    SELECT token_hash, outcome, status FROM fernery.attempts
    WHERE job_id = i.job_id AND attempt_id = i.attempt_id LIMIT 1
) a ON true
WHERE l.attempt_id IS NOT NULL OR a.outcome IS NOT NULL;
