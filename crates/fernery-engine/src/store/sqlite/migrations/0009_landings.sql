-- The way of a patch that passed to its base branch: one row for each ticket, of its last run. What was decided and done is in
-- `decisions` and in the journal.
CREATE TABLE landings (
    objective_id  TEXT    NOT NULL PRIMARY KEY,
    azolla_id     TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    work_order_id TEXT    NOT NULL,
    repo_ref      TEXT    NOT NULL,
    base_branch   TEXT    NOT NULL,
    base_commit   TEXT    NOT NULL,                 -- which the patch is for
    branch        TEXT,                             -- the candidate's, and its commit
    candidate     TEXT,
    stacked       INTEGER NOT NULL DEFAULT 0,       -- commits of earlier attempts are below it
    patch_sha256  TEXT    NOT NULL,
    tip           TEXT    NOT NULL DEFAULT '',      -- of the base branch, when the candidate was last tried on it
    fit           TEXT,                             -- what came of that
    why           TEXT,                             -- why it conflicts, or did not land
    files         TEXT    NOT NULL DEFAULT '[]',    -- that conflict
    state         TEXT    NOT NULL,
    open          INTEGER NOT NULL,                 -- the branch does not have it
    wanted        INTEGER NOT NULL DEFAULT 0,       -- an operator wants it there
    record_id     TEXT,                             -- by this decision
    wanted_at     INTEGER,
    tries         INTEGER NOT NULL DEFAULT 0,       -- that failed for no fault of the patch
    not_before    INTEGER,
    moved_from    TEXT,                             -- the branch moves from here
    moved_to      TEXT,                             -- to there
    remarks       TEXT    NOT NULL DEFAULT '[]',    -- what its working trees were left with
    reworks       INTEGER NOT NULL DEFAULT 0,       -- since a person said go
    opened_at     INTEGER NOT NULL,                 -- when its run passed
    updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX landings_to_try ON landings (azolla_id, repo_ref, base_branch, opened_at, objective_id) WHERE open;
CREATE INDEX landings_wanted ON landings (azolla_id, repo_ref, base_branch, wanted_at, objective_id) WHERE wanted;

-- Tickets that wait for another one: their blocker is resolved when that one is confirmed or has landed.
CREATE TABLE dependencies (
    objective_id TEXT NOT NULL,
    blocker_id   TEXT NOT NULL,
    after_id     TEXT NOT NULL,
    PRIMARY KEY (objective_id, blocker_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_of ON dependencies (after_id, objective_id);

-- Which process hosts an azolla and works on its tickets, and with which repositories. A row counts for a minute.
CREATE TABLE hosts (
    owner     TEXT    NOT NULL, -- the process
    azolla_id TEXT    NOT NULL,
    repos     TEXT    NOT NULL, -- their names
    said_at   INTEGER NOT NULL,
    PRIMARY KEY (azolla_id, owner)
) STRICT, WITHOUT ROWID;
