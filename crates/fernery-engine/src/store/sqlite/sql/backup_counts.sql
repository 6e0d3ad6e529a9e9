-- Rows of every table that holds what somebody asked for or did.
SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM ready), (SELECT count(*) FROM scheduled),
       (SELECT count(*) FROM leases), (SELECT count(*) FROM attempts), (SELECT count(*) FROM dead_letters),
       (SELECT count(*) FROM unique_keys), (SELECT count(*) FROM streams), (SELECT count(*) FROM tokens)
