-- What the server is and promises, as a session of Fernery's has it.
SELECT current_setting('server_version_num')::integer AS version_num, current_setting('server_version') AS version,
       pg_is_in_recovery() AS is_standby, current_setting('fsync')::boolean AS fsync,
       current_setting('full_page_writes')::boolean AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('synchronous_standby_names') AS synchronous_standby_names,
       current_setting('max_connections')::bigint
           - current_setting('superuser_reserved_connections')::bigint AS connections_max,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all;
