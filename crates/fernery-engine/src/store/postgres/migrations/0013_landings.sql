-- The way of a patch that passed to its base branch: one row for each ticket, of its last run. What was decided and done is in
-- `decisions` and in the journal.
CREATE TABLE fernery.landings (
    objective_id  text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id     text COLLATE "C" NOT NULL,
    run_id        text COLLATE "C" NOT NULL,
    work_order_id text COLLATE "C" NOT NULL,
    repo_ref      text COLLATE "C" NOT NULL,
    base_branch   text COLLATE "C" NOT NULL,
    base_commit   text COLLATE "C" NOT NULL, -- which the patch is for
    branch        text, -- the candidate's, and its commit
    candidate     text,
    stacked       boolean NOT NULL DEFAULT false, -- commits of earlier attempts are below it
    patch_sha256  text NOT NULL,
    tip           text COLLATE "C" NOT NULL DEFAULT '', -- of the base branch, when the candidate was last tried on it
    fit           text, -- what came of that
    why           text, -- why it conflicts, or did not land
    files         text NOT NULL DEFAULT '[]', -- that conflict
    state         text NOT NULL,
    open          boolean NOT NULL, -- the branch does not have it
    wanted        boolean NOT NULL DEFAULT false, -- an operator wants it there
    record_id     text, -- by this decision
    wanted_at     timestamptz,
    tries         bigint NOT NULL DEFAULT 0, -- that failed for no fault of the patch
    not_before    timestamptz,
    moved_from    text, -- the branch moves from here
    moved_to      text, -- to there
    remarks       text NOT NULL DEFAULT '[]', -- what its working trees were left with
    reworks       bigint NOT NULL DEFAULT 0, -- since a person said go
    opened_at     timestamptz NOT NULL, -- when its run passed
    updated_at    timestamptz NOT NULL
);
CREATE INDEX landings_to_try ON fernery.landings (azolla_id, repo_ref, base_branch, opened_at, objective_id) WHERE open;
CREATE INDEX landings_wanted ON fernery.landings (azolla_id, repo_ref, base_branch, wanted_at, objective_id) WHERE wanted;

-- Tickets that wait for another one: their blocker is resolved when that one is confirmed or has landed.
CREATE TABLE fernery.dependencies (
    objective_id text COLLATE "C" NOT NULL,
    blocker_id   text COLLATE "C" NOT NULL,
    after_id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (objective_id, blocker_id)
);
CREATE INDEX dependencies_of ON fernery.dependencies (after_id, objective_id);

-- Which process hosts an azolla and works on its tickets, and with which repositories. A row counts for a minute.
CREATE TABLE fernery.hosts (
    owner     text COLLATE "C" NOT NULL, -- the process
    azolla_id text COLLATE "C" NOT NULL,
    repos     text NOT NULL, -- their names
    said_at   timestamptz NOT NULL,
    PRIMARY KEY (azolla_id, owner)
);
