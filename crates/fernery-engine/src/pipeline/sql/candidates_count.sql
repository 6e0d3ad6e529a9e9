-- How many candidates wait, counted no further than the limit, and since when the oldest waits.
SELECT count(*), min(created_at) FROM (SELECT created_at FROM candidates WHERE azolla_id = $1 AND status = 'WAITING'
                                       ORDER BY created_at, candidate_id LIMIT $2) waiting;
