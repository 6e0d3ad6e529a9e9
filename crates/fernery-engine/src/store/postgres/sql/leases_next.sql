-- Of each stream, when the first of its leases runs out that had not $1 milliseconds ago, and when the last ran out that had,
-- with the clock; one row without a stream where there is no lease. The table holds only what runs now, so this reads all
-- of it.
WITH clock AS MATERIALIZED (
    SELECT now, now - $1::bigint * interval '1 millisecond' AS began FROM fernery.fernery_now() AS now
)
SELECT clock.now, l.stream, min(l.expires_at) FILTER (WHERE l.expires_at > clock.began),
       max(l.expires_at) FILTER (WHERE l.expires_at <= clock.began)
FROM clock LEFT JOIN fernery.leases l ON l.attempt_id IS NOT NULL
GROUP BY clock.now, l.stream;
