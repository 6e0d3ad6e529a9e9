-- Claimable jobs in the order of their streams and places, of one stream if $3 names it.
SELECT s.*, c.seq, c.job_id AS candidate
FROM (
    SELECT job_id, stream, seq FROM fernery.ready
    WHERE (stream, seq) > ($1::text, $2::bigint) AND ($3::text IS NULL OR stream = $3)
    ORDER BY stream, seq LIMIT $4
) c
CROSS JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE job_id = c.job_id LIMIT 1) s
ORDER BY c.stream, c.seq;
