-- Sets what is given for a stream, and leaves the rest as it is. Makes the stream at ?3 if it is not there.
INSERT INTO streams (name, redact, used_at) VALUES (?1, coalesce(?2, 0), ?3)
ON CONFLICT (name) DO UPDATE SET redact = coalesce(?2, redact)
