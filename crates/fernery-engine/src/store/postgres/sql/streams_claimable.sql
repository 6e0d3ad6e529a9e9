-- Which of these streams have a job that can be claimed.
SELECT i.name
FROM unnest($1::text[]) AS i(name)
WHERE EXISTS (SELECT FROM fernery.ready r WHERE r.stream = i.name)
  AND NOT EXISTS (SELECT FROM fernery.streams s WHERE s.name = i.name AND s.paused);
