-- As claim_hinted, where messages tell of streams that are not the first asked for ($1). What waits in an earlier one goes
-- first, also without a message: it may not be sent yet, be lost, or never come. One look into each of those streams.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), told AS MATERIALIZED (
    SELECT r.*, h.message_ms, h.message_n, array_position($1::text[], h.stream) AS rank
    FROM unnest($9::text[], $10::bigint[], $11::uuid[], $12::bigint[], $13::bigint[], $14::bigint[])
         AS h(stream, seq, job_id, version, message_ms, message_n)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS place, r.* FROM fernery.ready r
        WHERE r.stream = h.stream AND r.seq = h.seq AND r.job_id = h.job_id AND r.claim_version = h.version
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) r
    WHERE NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = h.stream AND p.paused)
    LIMIT $2
), earlier AS MATERIALIZED (
    SELECT s.name, s.rank::integer AS rank
    FROM unnest($1::text[]) WITH ORDINALITY AS s(name, rank)
    WHERE s.rank < (SELECT max(rank) FROM told)
      AND NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = s.name AND p.paused)
    ORDER BY s.rank
), untold AS MATERIALIZED (
    SELECT r.*, NULL::bigint AS message_ms, NULL::bigint AS message_n, e.rank
    FROM earlier e
    CROSS JOIN LATERAL (
        SELECT r.ctid AS place, r.* FROM fernery.ready r
        WHERE r.stream = e.name AND r.ctid <> ALL (ARRAY(SELECT t.place FROM told t))
        ORDER BY r.seq LIMIT $2 FOR UPDATE SKIP LOCKED
    ) r
    LIMIT $2
), picked AS MATERIALIZED (
    SELECT * FROM (SELECT * FROM told UNION ALL SELECT * FROM untold) both_kinds
    ORDER BY rank, seq LIMIT $2
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
ORDER BY d.n;
