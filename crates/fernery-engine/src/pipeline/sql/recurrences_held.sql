-- How many lines of an azolla are held, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM recurrences WHERE azolla_id = $1 AND stopped_at IS NULL AND held LIMIT $2) held;
