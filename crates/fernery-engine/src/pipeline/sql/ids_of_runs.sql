-- Ids of run records between $1 and $2 that end like $3, in order, each with how many are there: looked at no further than $5,
-- and counted one further, so that more than that show. One row without an id where none is found.
SELECT (SELECT count(*) FROM (SELECT 1 FROM runs WHERE run_id >= $1 AND run_id <= $2 LIMIT CAST($5 AS bigint) + 1) there), found.id
FROM (SELECT 1) one
     LEFT JOIN (SELECT id FROM (SELECT run_id AS id FROM runs WHERE run_id >= $1 AND run_id <= $2
                                ORDER BY run_id LIMIT $5) looked
                WHERE id LIKE $3 ORDER BY id LIMIT $4) found ON true
ORDER BY found.id;
