-- How many streams come after the one named ?1, and the sums of their counts.
SELECT count(*) AS streams, coalesce(sum(ready), 0) AS ready, coalesce(sum(scheduled), 0) AS scheduled,
       coalesce(sum(running), 0) AS running, coalesce(sum(succeeded), 0) AS succeeded, coalesce(sum(dead), 0) AS dead,
       coalesce(sum(cancelled), 0) AS cancelled
FROM streams WHERE name > ?1
