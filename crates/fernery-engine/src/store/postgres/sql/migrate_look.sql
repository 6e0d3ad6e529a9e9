-- Which server this is, and whether fernery was here before.
SELECT current_setting('server_version_num')::integer AS version_num,
       to_regclass('fernery.schema_version') IS NOT NULL AS made;
