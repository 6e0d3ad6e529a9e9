-- As claim_pick, of the jobs that messages tell of ($9 to $14) and only where they still wait under that very message.
-- Each is looked up by its place; what another claim has in hand is skipped.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), picked AS MATERIALIZED (
    SELECT r.*, h.message_ms, h.message_n
    FROM unnest($9::text[], $10::bigint[], $11::uuid[], $12::bigint[], $13::bigint[], $14::bigint[])
         AS h(stream, seq, job_id, version, message_ms, message_n)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS place, r.* FROM fernery.ready r
        WHERE r.stream = h.stream AND r.seq = h.seq AND r.job_id = h.job_id AND r.claim_version = h.version
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) r
    WHERE NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = h.stream AND p.paused)
    LIMIT $2
