-- Who has signed in to the pages, and the one-time links that let somebody in. A row is gone when it is spent or signed out.
CREATE TABLE fernery.sign_ins (
    sign_in_id  text COLLATE "C" PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,      -- LINK or SESSION
    token_id    text COLLATE "C" NOT NULL,      -- the token that it stands for
    secret_hash bytea NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX sign_ins_by_end ON fernery.sign_ins (expires_at);
