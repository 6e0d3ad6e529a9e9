-- Moves up to $2 ready jobs into leases, streams in the order of $1, oldest first and in each stream from its place $9 on,
-- skipping what another claim has in hand and streams that are paused. An asker ($7) that has $8 bytes of payload gets no
-- further job, and no payload is read that is not handed out. Never waits; writes nothing where nothing is ready.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), open_streams AS MATERIALIZED (
    SELECT s.name, s.start
    FROM unnest($1::text[], $9::bigint[]) WITH ORDINALITY AS s(name, start, place)
    WHERE NOT EXISTS (SELECT FROM fernery.streams p WHERE p.name = s.name AND p.paused)
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
