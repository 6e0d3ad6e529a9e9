-- The job engine. Page `store/mod.rs` says who writes each table and when a row goes.

CREATE TABLE jobs (
    job_id        BLOB    NOT NULL PRIMARY KEY,
    stream        TEXT    NOT NULL,
    payload       TEXT    NOT NULL,
    max_attempts  INTEGER NOT NULL,
    timeout_ms    INTEGER,
    unique_key    TEXT,
    producer      TEXT,
    content_hash  BLOB,                 -- only where the producer made the id
    created_at    INTEGER NOT NULL,
    run_at        INTEGER NOT NULL,
    seq           INTEGER NOT NULL,     -- its place in ready or scheduled, while it waits
    ended         TEXT,                 -- DEAD or CANCELLED; success is told by the last attempt
    ended_at      INTEGER,
    claim_version INTEGER NOT NULL      -- as of the end, where it ended without an attempt
) STRICT;

CREATE TABLE ready (
    stream        TEXT    NOT NULL,
    seq           INTEGER NOT NULL,
    job_id        BLOB    NOT NULL,
    ready_at      INTEGER NOT NULL,
    claim_version INTEGER NOT NULL,
    attempt_no    INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    released      INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE scheduled (
    job_id        BLOB    NOT NULL PRIMARY KEY,
    stream        TEXT    NOT NULL,
    seq           INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    claim_version INTEGER NOT NULL,
    attempt_no    INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    released      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX scheduled_by_due ON scheduled (due_at);

-- resource_type 0 is a plain job; events and workorders are held in this table too.
CREATE TABLE leases (
    resource_id      BLOB    NOT NULL PRIMARY KEY,
    resource_type    INTEGER NOT NULL DEFAULT 0,
    attempt_id       BLOB,
    token_hash       BLOB,
    owner_id         TEXT    NOT NULL,
    stream           TEXT    NOT NULL,
    seq              INTEGER NOT NULL,
    ready_at         INTEGER NOT NULL,
    started_at       INTEGER NOT NULL,
    heartbeat_at     INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    timeout_at       INTEGER,
    claim_version    INTEGER NOT NULL,
    attempt_no       INTEGER NOT NULL,
    failed           INTEGER NOT NULL,
    lost             INTEGER NOT NULL,
    released         INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    unique_key       TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    job_id        BLOB    NOT NULL,
    attempt_no    INTEGER NOT NULL,
    attempt_id    BLOB    NOT NULL,
    token_hash    BLOB    NOT NULL,
    worker_id     TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    finished_at   INTEGER NOT NULL,
    outcome       TEXT    NOT NULL,
    status        TEXT    NOT NULL,     -- where this end left the job
    claim_version INTEGER NOT NULL,
    result        TEXT,
    error         TEXT,
    PRIMARY KEY (job_id, attempt_no)
) STRICT;

CREATE TABLE dead_letters (
    job_id    BLOB    NOT NULL PRIMARY KEY,
    stream    TEXT    NOT NULL,
    buried_at INTEGER NOT NULL,
    reason    TEXT    NOT NULL,
    code      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE unique_keys (
    key    TEXT NOT NULL PRIMARY KEY,
    job_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE streams (
    name      TEXT    NOT NULL PRIMARY KEY,
    paused    INTEGER NOT NULL DEFAULT 0,
    ready     INTEGER NOT NULL DEFAULT 0,
    scheduled INTEGER NOT NULL DEFAULT 0,
    running   INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    token_id    TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    streams     TEXT    NOT NULL,       -- JSON array of patterns
    secret_hash BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER
) STRICT, WITHOUT ROWID;

-- seq: the next place that was never given out; clock: the newest instant that was ever current.
CREATE TABLE marks (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO marks (name, value) VALUES ('seq', 1), ('clock', 0);
