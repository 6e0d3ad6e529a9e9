-- As claim_pick, of the jobs of one stream that messages tell of ($9 to $14) and only where they still wait under that very
-- message. They are looked up by their places in one go, which costs half of one look each; what another claim has in hand
-- is skipped.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), waiting AS MATERIALIZED (
    SELECT r.ctid AS place, r.* FROM fernery.ready r
    WHERE r.stream = ($9::text[])[1] AND r.seq = ANY ($10::bigint[])
      AND NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = ($9::text[])[1] AND p.paused)
    FOR UPDATE OF r SKIP LOCKED
), picked AS MATERIALIZED (
    SELECT w.*, h.message_ms, h.message_n
    FROM waiting w
    JOIN unnest($10::bigint[], $11::uuid[], $12::bigint[], $13::bigint[], $14::bigint[])
         AS h(seq, job_id, version, message_ms, message_n)
      ON h.seq = w.seq AND h.job_id = w.job_id AND h.version = w.claim_version
    LIMIT $2
