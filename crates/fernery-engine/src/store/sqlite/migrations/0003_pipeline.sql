-- The pipeline. Page `pipeline/mod.rs` says who writes each table. Documents are the artifacts as their schemas have them;
-- columns beside them are what the control plane looks things up by.

CREATE TABLE azollas (
    azolla_id  TEXT    NOT NULL PRIMARY KEY,
    blueprint  TEXT    NOT NULL,        -- the one in force
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blueprints (
    blueprint  TEXT    NOT NULL PRIMARY KEY,    -- digest of the document
    azolla_id  TEXT    NOT NULL,
    document   TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE objectives (
    objective_id        TEXT    NOT NULL PRIMARY KEY,
    azolla_id           TEXT    NOT NULL,
    title               TEXT    NOT NULL,
    acceptance_criteria TEXT    NOT NULL,
    objective_type      TEXT    NOT NULL,
    status              TEXT    NOT NULL,
    importance          INTEGER NOT NULL,
    urgency             INTEGER NOT NULL,
    blocked_reason      TEXT,
    metadata            TEXT    NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    entry               INTEGER NOT NULL DEFAULT 0,     -- how often it has entered TODO
    emitted             INTEGER NOT NULL DEFAULT 0,     -- for which entry TICKET_READY was emitted
    approval            TEXT,                           -- the decision that covers it
    unconfirmed         INTEGER NOT NULL DEFAULT 0,     -- DONE by the gate, and no person has looked
    failures            INTEGER NOT NULL DEFAULT 0,     -- gate failures since it was approved
    attempts            INTEGER NOT NULL DEFAULT 0,     -- what the envelope counts, since it was approved
    wall_ms             INTEGER NOT NULL DEFAULT 0,
    tokens              INTEGER NOT NULL DEFAULT 0,
    cost_usd_micros     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX objectives_by_age ON objectives (created_at, objective_id);
CREATE INDEX objectives_by_status ON objectives (azolla_id, status, created_at, objective_id);
CREATE INDEX objectives_to_emit ON objectives (azolla_id, updated_at, objective_id) WHERE status = 'TODO' AND emitted < entry;
CREATE INDEX objectives_to_confirm ON objectives (azolla_id) WHERE unconfirmed;

CREATE TABLE blockers (
    objective_id TEXT    NOT NULL,
    place        INTEGER NOT NULL,
    blocker_id   TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    description  TEXT    NOT NULL,
    resolved     INTEGER NOT NULL,
    PRIMARY KEY (objective_id, place)
) STRICT, WITHOUT ROWID;

-- What operators decided: approvals, confirmations, reopenings.
CREATE TABLE decisions (
    record_id    TEXT    NOT NULL PRIMARY KEY,
    objective_id TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    shown        TEXT    NOT NULL,      -- exactly what the digest is of
    who          TEXT    NOT NULL,
    note         TEXT,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_of_objective ON decisions (objective_id, created_at);

CREATE TABLE events (
    event_id      TEXT    NOT NULL PRIMARY KEY,
    azolla_id     TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    resource_id   TEXT    NOT NULL,
    entry         INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    processed     INTEGER NOT NULL DEFAULT 0,
    processed_at  INTEGER,
    reason        TEXT,
    work_order_id TEXT,
    claim_version INTEGER NOT NULL DEFAULT 0,
    UNIQUE (type, resource_id, entry)
) STRICT;
CREATE INDEX events_open ON events (azolla_id, created_at, event_id) WHERE NOT processed;
CREATE INDEX events_by_age ON events (created_at, event_id);

CREATE TABLE snapshots (
    snapshot_id  TEXT    NOT NULL PRIMARY KEY,
    objective_id TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    document     TEXT    NOT NULL
) STRICT;

CREATE TABLE workorders (
    work_order_id   TEXT    NOT NULL PRIMARY KEY,
    objective_id    TEXT    NOT NULL,
    azolla_id       TEXT    NOT NULL,
    event_id        TEXT    NOT NULL UNIQUE,
    diazotroph_type TEXT    NOT NULL,
    snapshot_id     TEXT    NOT NULL,
    branch_name     TEXT,
    budget_ms       INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    blueprint       TEXT    NOT NULL,
    spent_ms        INTEGER NOT NULL DEFAULT 0,
    executed_at     INTEGER,
    output_id       TEXT,
    judged          INTEGER NOT NULL DEFAULT 0,
    gate_tries      INTEGER NOT NULL DEFAULT 0,
    gate_not_before INTEGER,
    cancelled       INTEGER NOT NULL DEFAULT 0,
    claim_version   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX workorders_active ON workorders (azolla_id, work_order_id) WHERE NOT judged;
CREATE INDEX workorders_to_judge ON workorders (azolla_id, executed_at, work_order_id) WHERE NOT judged AND status = 'EXECUTED';
CREATE INDEX workorders_to_cancel ON workorders (work_order_id) WHERE cancelled AND status = 'CREATED';
-- An objective has one workorder under way at most.
CREATE UNIQUE INDEX workorders_one_active ON workorders (objective_id) WHERE NOT judged;
CREATE INDEX workorders_of_objective ON workorders (objective_id, created_at);
CREATE INDEX workorders_by_age ON workorders (created_at, work_order_id);

CREATE TABLE bundles (
    output_id     TEXT    NOT NULL PRIMARY KEY,
    work_order_id TEXT    NOT NULL UNIQUE,
    objective_id  TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    document      TEXT    NOT NULL
) STRICT;

CREATE TABLE runs (
    run_id        TEXT    NOT NULL PRIMARY KEY,
    work_order_id TEXT    NOT NULL UNIQUE,
    objective_id  TEXT    NOT NULL,
    azolla_id     TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    document      TEXT    NOT NULL,
    evidence      TEXT    NOT NULL
) STRICT;
CREATE INDEX runs_of_objective ON runs (objective_id, created_at);
CREATE INDEX runs_by_age ON runs (created_at, run_id);

CREATE TABLE pauses (
    pause_key    TEXT    NOT NULL PRIMARY KEY,  -- what it is about: there is one pause for it
    objective_id TEXT    NOT NULL,
    azolla_id    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    document     TEXT    NOT NULL
) STRICT;
CREATE INDEX pauses_of_objective ON pauses (objective_id, created_at);
CREATE INDEX pauses_by_age ON pauses (created_at, pause_key);

-- Leases of polling workers. A running workorder's is in `leases`, as every job's.
CREATE TABLE claims (
    resource_type    TEXT    NOT NULL,
    resource_id      TEXT    NOT NULL,
    owner_id         TEXT    NOT NULL,
    lease_expires_at INTEGER NOT NULL,
    heartbeat_at     INTEGER NOT NULL,
    claim_version    INTEGER NOT NULL,
    PRIMARY KEY (resource_type, resource_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal (
    entry_id   TEXT    NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    act        TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    why        TEXT    NOT NULL
) STRICT;
CREATE INDEX journal_of_subject ON journal (subject, created_at);
CREATE INDEX journal_by_age ON journal (created_at, entry_id);
CREATE TABLE unsealed (entry_id TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE seals (
    place    INTEGER NOT NULL PRIMARY KEY,
    entry_id TEXT    NOT NULL UNIQUE,
    hash     TEXT    NOT NULL
) STRICT;

-- History never changes: the database itself refuses.
CREATE TRIGGER blueprints_stay BEFORE UPDATE ON blueprints BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER blueprints_kept BEFORE DELETE ON blueprints BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER decisions_stay BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER decisions_kept BEFORE DELETE ON decisions BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER snapshots_stay BEFORE UPDATE ON snapshots BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER snapshots_kept BEFORE DELETE ON snapshots BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER bundles_stay BEFORE UPDATE ON bundles BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER bundles_kept BEFORE DELETE ON bundles BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER runs_stay BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER runs_kept BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER pauses_stay BEFORE UPDATE ON pauses BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER pauses_kept BEFORE DELETE ON pauses BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER journal_stay BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER journal_kept BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER seals_stay BEFORE UPDATE ON seals BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER seals_kept BEFORE DELETE ON seals BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
-- An event is processed once, and a workorder executed and judged once.
CREATE TRIGGER events_once BEFORE UPDATE OF processed, reason, work_order_id ON events WHEN OLD.processed <> 0
BEGIN SELECT RAISE(ABORT, 'an event is processed once'); END;
CREATE TRIGGER workorders_once BEFORE UPDATE OF status, output_id ON workorders WHEN OLD.status = 'EXECUTED'
BEGIN SELECT RAISE(ABORT, 'a workorder is executed once'); END;
CREATE TRIGGER workorders_judged_once BEFORE UPDATE OF judged ON workorders WHEN OLD.judged <> 0
BEGIN SELECT RAISE(ABORT, 'a workorder is judged once'); END;
-- They hold the keys that exclude a second one.
CREATE TRIGGER events_kept BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER workorders_kept BEFORE DELETE ON workorders BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
