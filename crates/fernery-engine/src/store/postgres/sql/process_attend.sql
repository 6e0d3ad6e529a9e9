-- Says that a process is there, and removes those that have not said so for $12 ms. One that another is removing or that
-- comes back at this moment is left to whoever has it: two that clean up never wait for each other.
WITH forgotten AS (
    DELETE FROM fernery.processes WHERE process_id IN (
        SELECT process_id FROM fernery.processes
        WHERE process_id <> $1 AND seen_at <= fernery.fernery_now() - $12::bigint * interval '1 millisecond'
        FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO fernery.processes (process_id, host, pid, url, version, schema_version, lease_ttl_ms,
    heartbeat_interval_ms, reap_interval_ms, transport, started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, fernery.fernery_now())
ON CONFLICT (process_id) DO UPDATE SET seen_at = excluded.seen_at;
