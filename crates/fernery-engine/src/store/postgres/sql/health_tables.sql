-- Live and dead rows of the tables that every job passes through.
SELECT relname::text, n_live_tup, n_dead_tup
FROM pg_stat_all_tables
WHERE schemaname = 'fernery' AND relname IN ('ready', 'leases', 'stream_deltas')
ORDER BY relname;
