-- What the server is and promises, as a session of Fernery's has it.
SELECT current_setting('server_version_num')::integer, current_setting('server_version'), pg_is_in_recovery(),
       current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
       current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE');
