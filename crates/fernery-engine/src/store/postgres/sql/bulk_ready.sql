-- Claimable jobs in the order of their streams and places, after ($1, $2), up to the stream $3, and when they were enqueued.
SELECT r.job_id, r.stream, r.seq, j.created_at AS at
FROM (
    SELECT job_id, stream, seq FROM fernery.ready
    WHERE (stream, seq) > ($1::text, $2::bigint) AND stream <= $3::text
    ORDER BY stream, seq LIMIT $4
) r
CROSS JOIN LATERAL (SELECT created_at FROM fernery.jobs WHERE job_id = r.job_id LIMIT 1) j
ORDER BY r.stream, r.seq;
