-- How many streams come after the one named ?1, and the sums of their counts.
SELECT count(*), coalesce(sum(ready), 0), coalesce(sum(scheduled), 0), coalesce(sum(running), 0),
       coalesce(sum(succeeded), 0), coalesce(sum(dead), 0), coalesce(sum(cancelled), 0)
FROM streams WHERE name > ?1
