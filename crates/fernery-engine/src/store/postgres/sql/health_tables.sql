-- Live and dead rows of the tables that every job passes through.
SELECT relname::text AS name, n_live_tup AS live, n_dead_tup AS dead
FROM pg_stat_all_tables
WHERE schemaname = 'fernery' AND relname IN ('ready', 'leases', 'stream_deltas')
ORDER BY relname;
