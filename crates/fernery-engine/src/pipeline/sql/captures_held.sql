-- How many captures are held in all inboxes, counted no further than the limit.
SELECT count(*) FROM (SELECT 1 FROM captures WHERE held LIMIT $1) held;
