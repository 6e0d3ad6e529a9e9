-- The jobs $2 of the stream $1, in the places $3 with the versions $4, are to be told of.
INSERT INTO fernery.outbox (stream, job_ids, places, versions) VALUES ($1, $2, $3, $4);
