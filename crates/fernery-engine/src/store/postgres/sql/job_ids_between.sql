-- Ids of jobs between $1 and $2 that end like $3, of one producer if $4 names it, in order, each with how many are there:
-- looked at no further than $6, and counted one further, so that more than that show. One row without an id where none is found.
SELECT (SELECT count(*) FROM (SELECT 1 FROM fernery.jobs WHERE job_id >= $1 AND job_id <= $2 LIMIT CAST($6 AS bigint) + 1) there) AS looked, found.job_id
FROM (SELECT 1) one
     LEFT JOIN (SELECT job_id FROM (SELECT job_id, producer FROM fernery.jobs WHERE job_id >= $1 AND job_id <= $2
                                    ORDER BY job_id LIMIT $6) looked
                WHERE job_id::text LIKE $3 AND ($4::text IS NULL OR producer = $4)
                ORDER BY job_id LIMIT $5) found ON true
ORDER BY found.job_id;
