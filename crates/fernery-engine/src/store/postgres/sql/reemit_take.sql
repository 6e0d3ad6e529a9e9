-- The next $1 waiting jobs of a stream that is to be told of again; the stream alone where none is left.
WITH asked AS MATERIALIZED (
    SELECT stream, next_place, last_place FROM fernery.reemissions ORDER BY stream LIMIT 1 FOR UPDATE SKIP LOCKED
)
SELECT a.stream, r.job_id, r.seq, r.claim_version, a.next_place
FROM asked a
LEFT JOIN LATERAL (
    SELECT job_id, seq, claim_version FROM fernery.ready
    WHERE stream = a.stream AND seq BETWEEN a.next_place AND a.last_place
    ORDER BY seq LIMIT $1
) r ON true
ORDER BY r.seq;
