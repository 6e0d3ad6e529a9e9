-- Who is connected, and which transactions hold back the vacuum of this database. What belongs to others is NULL for a
-- user without the role pg_read_all_stats.
SELECT count(*) FILTER (WHERE backend_type = 'client backend'),
       coalesce(extract(epoch FROM max(clock_timestamp() - xact_start) FILTER (
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL))), 0)::double precision,
       (array_agg(pid ORDER BY xact_start) FILTER (
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)))[1],
       count(*) FILTER (WHERE datname = current_database() AND state LIKE 'idle in transaction%'),
       coalesce(extract(epoch FROM max(clock_timestamp() - state_change) FILTER (
           WHERE datname = current_database() AND state LIKE 'idle in transaction%')), 0)::double precision
FROM pg_stat_activity;
