-- Up to $1 rows of messages that nobody else is sending. By what is there, never by the last id seen: an id is drawn before
-- its transaction commits, and one that commits late would be passed over for ever.
SELECT id, stream, job_ids, places, versions FROM fernery.outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED;
