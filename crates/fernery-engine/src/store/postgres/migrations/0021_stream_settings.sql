-- What operators set for a stream. So far one thing: viewers do not see what its jobs hold, where `redact` is true.
ALTER TABLE fernery.streams ADD COLUMN redact boolean NOT NULL DEFAULT false;
