-- What reviewers leave on the patch of a run: comments, which files they have viewed, and which run they looked at last.

-- A comment on lines of a file of the patch. One that is taken back stays as a row without a text, so that a request that comes
-- again does not bring it back.
CREATE TABLE comments (
    comment_id TEXT    NOT NULL PRIMARY KEY, -- chosen by who wrote it
    run_id     TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    side       TEXT    NOT NULL,             -- old or new: the file before or after the patch
    first_line INTEGER NOT NULL,
    last_line  INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    author     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE INDEX comments_of_run ON comments (run_id, path, first_line, comment_id) WHERE deleted_at IS NULL;

-- The content of a file that a reviewer has viewed. A later attempt that changes the file otherwise has another content.
CREATE TABLE viewed_files (
    objective_id TEXT NOT NULL,
    reviewer     TEXT NOT NULL,
    path         TEXT NOT NULL,
    content      TEXT NOT NULL, -- the SHA-256 of the part of the patch that changes it
    PRIMARY KEY (objective_id, reviewer, path)
) STRICT, WITHOUT ROWID;

-- The newest run of a ticket that a reviewer has looked at, and the one that they had looked at before.
CREATE TABLE looks (
    objective_id  TEXT    NOT NULL,
    reviewer      TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    before_run_id TEXT,
    looked_at     INTEGER NOT NULL,
    PRIMARY KEY (objective_id, reviewer)
) STRICT, WITHOUT ROWID;
