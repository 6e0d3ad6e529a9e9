-- Makes a fresh connection one that a dead peer cannot hang, that commits durably, and whose plans do not follow the
-- statistics of tables that are empty one minute and full the next: every hot statement has one good plan. Tables are read
-- by key, lists that were passed in are joined by hash; a row looked at in vain is what costs.
SELECT set_config('statement_timeout', '5s', false),
       set_config('lock_timeout', '1s', false),
       set_config('idle_in_transaction_session_timeout', '5s', false),
       CASE WHEN version() LIKE '%linux%' THEN set_config('client_connection_check_interval', '1s', false) END,
       set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false),
       set_config('enable_mergejoin', 'off', false),
       set_config('random_page_cost', '1.1', false),
       set_config('cpu_tuple_cost', '1', false),
       set_config('jit', 'off', false),
       set_config('search_path', 'fernery, pg_catalog', false),
       CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END;
