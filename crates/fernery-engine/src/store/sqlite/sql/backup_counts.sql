-- Rows of every table that holds what somebody asked for or did.
SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM ready) AS ready, (SELECT count(*) FROM scheduled) AS scheduled,
       (SELECT count(*) FROM leases) AS leases, (SELECT count(*) FROM attempts) AS attempts, (SELECT count(*) FROM dead_letters) AS dead_letters,
       (SELECT count(*) FROM unique_keys) AS unique_keys, (SELECT count(*) FROM streams) AS streams, (SELECT count(*) FROM tokens) AS tokens
