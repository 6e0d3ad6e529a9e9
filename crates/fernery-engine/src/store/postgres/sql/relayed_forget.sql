-- Forgets the stream $1, whose newest message is ($2, $3), unless a job waits in it or is to be told of.
DELETE FROM fernery.relayed
WHERE stream = $1 AND newest_ms = $2 AND newest_n = $3
  AND NOT EXISTS (SELECT FROM fernery.ready WHERE stream = $1)
  AND NOT EXISTS (SELECT FROM fernery.reemissions WHERE stream = $1)
RETURNING stream;
