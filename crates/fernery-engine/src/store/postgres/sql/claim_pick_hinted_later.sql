-- As claim_pick_hinted, where messages tell of streams that are not the first asked for ($1). What waits in an earlier one goes
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
