-- What operators set for a stream. So far one thing: viewers do not see what its jobs hold, where `redact` is true.
ALTER TABLE fernery.streams ADD COLUMN redact boolean NOT NULL DEFAULT false;

-- What a page that follows changes asks once a second reads the ends of these, however many streams and tokens there are.
CREATE INDEX streams_paused ON fernery.streams (name) WHERE paused;
CREATE INDEX tokens_newest ON fernery.tokens (created_at, token_id);
CREATE INDEX tokens_revoked ON fernery.tokens (revoked_at, token_id) WHERE revoked_at IS NOT NULL;
