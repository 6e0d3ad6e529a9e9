-- What reviewers leave on the patch of a run: comments, which files they have viewed, and which run they looked at last.

-- A comment on lines of a file of the patch. One that is taken back stays as a row without a text, so that a request that comes
-- again does not bring it back.
CREATE TABLE fernery.comments (
    comment_id text COLLATE "C" NOT NULL PRIMARY KEY, -- chosen by who wrote it
    run_id     text COLLATE "C" NOT NULL,
    path       text COLLATE "C" NOT NULL,
    side       text COLLATE "C" NOT NULL,             -- old or new: the file before or after the patch
    first_line bigint NOT NULL,
    last_line  bigint NOT NULL,
    text       text NOT NULL,
    author     text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE INDEX comments_of_run ON fernery.comments (run_id, path, first_line, comment_id) WHERE deleted_at IS NULL;

-- The content of a file that a reviewer has viewed. A later attempt that changes the file otherwise has another content.
CREATE TABLE fernery.viewed_files (
    objective_id text COLLATE "C" NOT NULL,
    reviewer     text COLLATE "C" NOT NULL,
    path         text COLLATE "C" NOT NULL,
    content      text COLLATE "C" NOT NULL, -- the SHA-256 of the part of the patch that changes it
    PRIMARY KEY (objective_id, reviewer, path)
);

-- The newest run of a ticket that a reviewer has looked at, and the one that they had looked at before.
CREATE TABLE fernery.looks (
    objective_id  text COLLATE "C" NOT NULL,
    reviewer      text COLLATE "C" NOT NULL,
    run_id        text COLLATE "C" NOT NULL,
    before_run_id text COLLATE "C",
    looked_at     timestamptz NOT NULL,
    PRIMARY KEY (objective_id, reviewer)
);
