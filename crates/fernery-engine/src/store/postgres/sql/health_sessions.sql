-- Who is connected, and which transactions hold back the vacuum of this database. What belongs to others is NULL for a
-- user without the role pg_read_all_stats.
SELECT count(*) FILTER (WHERE backend_type = 'client backend') AS connections,
       coalesce(extract(epoch FROM max(clock_timestamp() - xact_start) FILTER (
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL))), 0)::double precision AS oldest_seconds,
       (array_agg(pid ORDER BY xact_start) FILTER (
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)))[1] AS oldest_pid,
       count(*) FILTER (WHERE datname = current_database() AND state LIKE 'idle in transaction%') AS idle_in_transaction,
       coalesce(extract(epoch FROM max(clock_timestamp() - state_change) FILTER (
           WHERE datname = current_database() AND state LIKE 'idle in transaction%')), 0)::double precision AS idle_seconds
FROM pg_stat_activity;
