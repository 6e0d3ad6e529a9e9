-- Moves up to $2 ready jobs into leases, streams in the order of $1, oldest first and in each stream from its place $9 on,
-- skipping what another claim has in hand and streams that are paused. An asker ($7) that has $8 bytes of payload gets no
-- further job, and no payload is read that is not handed out. Never waits; writes nothing where nothing is ready.
-- From $10 on leases of these streams may have run out: then nothing is taken, and one row with the number 0 says so.
WITH clock AS MATERIALIZED (
    SELECT now, coalesce(now >= $10::timestamptz, false) AS due FROM fernery.fernery_now() AS now
), open_streams AS MATERIALIZED (
    SELECT s.name, s.start
    FROM unnest($1::text[], $9::bigint[]) WITH ORDINALITY AS s(name, start, place)
    WHERE NOT (SELECT due FROM clock)
      AND NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = s.name AND p.paused)
    ORDER BY s.place
), picked AS MATERIALIZED (
    -- Stream by stream and no further than needed: the outer LIMIT stops before the next stream is touched.
    SELECT r.*, NULL::bigint AS message_ms, NULL::bigint AS message_n
    FROM open_streams s
    CROSS JOIN LATERAL (
        SELECT r.ctid AS place, r.* FROM fernery.ready r WHERE r.stream = s.name AND r.seq >= s.start ORDER BY r.seq
        LIMIT $2 FOR UPDATE SKIP LOCKED
    ) r
    LIMIT $2
), sized AS MATERIALIZED (
    SELECT p.*, j.max_attempts, j.unique_key, j.timeout_ms, j.payload_bytes AS bytes,
           row_number() OVER (ORDER BY array_position($1::text[], p.stream), p.seq) AS n
    FROM picked p
    CROSS JOIN LATERAL (
        SELECT max_attempts, timeout_ms, unique_key, payload_bytes
        FROM fernery.jobs WHERE job_id = p.job_id LIMIT 1
    ) j
), slotted AS MATERIALIZED (
    SELECT s.*, h.attempt_id, h.token_hash, h.worker_id,
           sum(s.bytes) OVER (PARTITION BY h.ask ORDER BY s.n) - s.bytes AS bytes_before
    FROM sized s
    JOIN unnest($3::uuid[], $4::bytea[], $5::text[], $7::int[])
         WITH ORDINALITY AS h(attempt_id, token_hash, worker_id, ask, n) ON h.n = s.n
), dealt AS MATERIALIZED (
    SELECT s.*, clock.now, clock.now + s.timeout_ms * interval '1 millisecond' AS timeout_at
    FROM slotted s, clock WHERE s.bytes_before < $8
), gone AS (
    -- A ready row is never updated, so the row that was locked is at the place where it was seen.
    DELETE FROM fernery.ready WHERE ctid = ANY (ARRAY(SELECT place FROM dealt))
), leased AS (
    INSERT INTO fernery.leases (resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at,
                                heartbeat_at, expires_at, timeout_at, claim_version, attempt_no, failed, lost,
                                released, max_attempts, unique_key, message_ms, message_n)
    SELECT d.job_id, d.attempt_id, d.token_hash, d.worker_id, d.stream, d.seq, d.ready_at, d.now,
           d.now, least(d.now + $6::bigint * interval '1 millisecond', d.timeout_at), d.timeout_at,
           d.claim_version + 1, d.attempt_no + 1, d.failed, d.lost,
           d.released, d.max_attempts, d.unique_key, d.message_ms, d.message_n
    FROM dealt d
    ORDER BY d.job_id
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, running)
    SELECT stream, -count(*), count(*) FROM dealt GROUP BY stream
)
SELECT d.n, d.job_id, d.stream, d.seq, d.ready_at, j.payload, d.attempt_no + 1, d.max_attempts,
       least(d.now + $6::bigint * interval '1 millisecond', d.timeout_at), d.timeout_at, d.now,
       d.message_ms, d.message_n
FROM dealt d
CROSS JOIN LATERAL (SELECT payload FROM fernery.jobs WHERE job_id = d.job_id LIMIT 1) j
UNION ALL
SELECT 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, now, NULL, NULL FROM clock WHERE due
ORDER BY n;
