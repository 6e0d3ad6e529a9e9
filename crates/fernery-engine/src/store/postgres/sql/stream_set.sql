-- Sets what is given for a stream, and leaves the rest as it is. Makes the stream if it is not there; its counts may not have been
-- folded yet.
INSERT INTO fernery.streams AS s (name, redact) VALUES ($1::text, coalesce($2::boolean, false))
ON CONFLICT (name) DO UPDATE SET redact = coalesce($2::boolean, s.redact);
