-- What operators set for a stream. So far one thing: viewers do not see what its jobs hold, where `redact` is true.
ALTER TABLE streams ADD COLUMN redact INTEGER NOT NULL DEFAULT 0;
