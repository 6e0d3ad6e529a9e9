-- Which server this is, and whether fernery was here before.
SELECT current_setting('server_version_num')::integer, to_regclass('fernery.schema_version') IS NOT NULL;
