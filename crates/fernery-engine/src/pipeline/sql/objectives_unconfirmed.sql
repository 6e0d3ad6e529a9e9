-- How many wait for confirmation, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM objectives WHERE azolla_id = $1 AND unconfirmed LIMIT $2) waiting;
