-- Who has signed in to the pages, and the one-time links that let somebody in. A row is gone when it is spent or signed out.
CREATE TABLE sign_ins (
    sign_in_id  TEXT    NOT NULL PRIMARY KEY,
    kind        TEXT    NOT NULL,       -- LINK or SESSION
    token_id    TEXT    NOT NULL,       -- the token that it stands for
    secret_hash BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_ins_by_end ON sign_ins (expires_at);
