-- Moves up to $2 ready jobs into leases, streams in the order of $1, oldest first and in each stream from its place $7 on,
-- skipping what another claim has in hand and streams that are paused. Never waits; writes nothing where nothing is ready.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), open_streams AS MATERIALIZED (
    SELECT s.name, s.start
    FROM unnest($1::text[], $7::bigint[]) WITH ORDINALITY AS s(name, start, place)
    WHERE NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = s.name AND p.paused)
    ORDER BY s.place
), picked AS MATERIALIZED (
    -- Stream by stream and no further than needed: the outer LIMIT stops before the next stream is touched.
    SELECT r.place
    FROM open_streams s
    CROSS JOIN LATERAL (
        SELECT r.ctid AS place FROM fernery.ready r WHERE r.stream = s.name AND r.seq >= s.start ORDER BY r.seq
        LIMIT $2 FOR UPDATE SKIP LOCKED
    ) r
    LIMIT $2
), gone AS (
    -- A ready row is never updated, so the row that was locked is at the place where it was seen.
    DELETE FROM fernery.ready WHERE ctid = ANY (ARRAY(SELECT place FROM picked))
    RETURNING stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released
), dealt AS MATERIALIZED (
    SELECT g.*, j.payload, j.max_attempts, j.unique_key,
           clock.now + j.timeout_ms * interval '1 millisecond' AS timeout_at, clock.now,
           row_number() OVER (ORDER BY array_position($1::text[], g.stream), g.seq) AS n
    FROM clock, gone g
    CROSS JOIN LATERAL (
        SELECT payload, max_attempts, timeout_ms, unique_key FROM fernery.jobs WHERE job_id = g.job_id LIMIT 1
    ) j
), leased AS (
    INSERT INTO fernery.leases (resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at,
                                heartbeat_at, expires_at, timeout_at, claim_version, attempt_no, failed, lost,
                                released, max_attempts, unique_key)
    SELECT d.job_id, h.attempt_id, h.token_hash, h.worker_id, d.stream, d.seq, d.ready_at, d.now,
           d.now, least(d.now + $6::bigint * interval '1 millisecond', d.timeout_at), d.timeout_at,
           d.claim_version + 1, d.attempt_no + 1, d.failed, d.lost,
           d.released, d.max_attempts, d.unique_key
    FROM dealt d
    JOIN unnest($3::uuid[], $4::bytea[], $5::text[]) WITH ORDINALITY AS h(attempt_id, token_hash, worker_id, n)
         ON h.n = d.n
    ORDER BY d.job_id
), counted AS (
    INSERT INTO fernery.stream_deltas (stream, ready, running)
    SELECT stream, -count(*), count(*) FROM gone GROUP BY stream
)
SELECT n, job_id, stream, seq, ready_at, payload, attempt_no + 1, max_attempts,
       least(now + $6::bigint * interval '1 millisecond', timeout_at), timeout_at
FROM dealt ORDER BY n;
