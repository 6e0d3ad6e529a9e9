-- The processes that said within $1 ms that they are there, oldest first.
SELECT process_id, host, pid, url, version, schema_version, lease_ttl_ms, heartbeat_interval_ms, reap_interval_ms,
       transport, started_at, seen_at
FROM fernery.processes
WHERE seen_at > fernery.fernery_now() - $1::bigint * interval '1 millisecond'
ORDER BY started_at, process_id;
