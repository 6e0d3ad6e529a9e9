-- Standbys that commits wait for, standbys that they do not wait for, and slots that nobody reads.
SELECT (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('async', 'potential')) AS asynchronous,
       (SELECT count(*) FROM pg_replication_slots WHERE NOT active) AS slots_inactive;
