-- How many workorders have no verdict yet, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM workorders WHERE azolla_id = $1 AND NOT judged LIMIT $2) active;
