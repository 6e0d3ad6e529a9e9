-- The inbox and the manifest. Page `pipeline/mod.rs` says who writes each table.

-- A line that somebody threw into the inbox.
CREATE TABLE captures (
    capture_id    TEXT NOT NULL PRIMARY KEY,
    azolla_id     TEXT NOT NULL,
    raw_content   TEXT NOT NULL, -- as it is shown
    raw_hex       TEXT, -- the bytes, where they are no plain text
    source_label  TEXT NOT NULL,
    status        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    ready_at      INTEGER NOT NULL, -- when it may be looked through
    entry         INTEGER NOT NULL DEFAULT 0, -- how often CAPTURE_READY was emitted for it
    announced     INTEGER NOT NULL DEFAULT 0, -- one of those is not processed yet
    tries         INTEGER NOT NULL DEFAULT 0, -- triages that came to nothing
    work_order_id TEXT -- the triage that it is in, or came out of
) STRICT;

-- What triage made of captures: it waits for a person.
CREATE TABLE candidates (
    candidate_id  TEXT NOT NULL PRIMARY KEY,
    azolla_id     TEXT NOT NULL,
    work_order_id TEXT,
    document      TEXT NOT NULL, -- title, criteria and so on, as they are now
    made_by       TEXT NOT NULL,
    status        TEXT NOT NULL,
    objective_id  TEXT, -- what it was promoted to
    merged_into   TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;

-- A capture is in one candidate.
CREATE TABLE candidate_captures (
    capture_id   TEXT NOT NULL PRIMARY KEY,
    candidate_id TEXT NOT NULL
) STRICT;

-- What a person should look at, as it was found then.
CREATE TABLE manifests (
    manifest_id   TEXT NOT NULL PRIMARY KEY,
    azolla_id     TEXT NOT NULL,
    work_order_id TEXT NOT NULL UNIQUE,
    created_at    INTEGER NOT NULL,
    facts_digest  TEXT NOT NULL,
    facts         TEXT NOT NULL,
    built_by      TEXT NOT NULL,
    document      TEXT NOT NULL
) STRICT;

-- What azollas asked each other, and what was answered.
CREATE TABLE queries (
    query_id   TEXT NOT NULL PRIMARY KEY,
    azolla_id  TEXT NOT NULL, -- who asked
    event_id   TEXT NOT NULL, -- for which event
    created_at INTEGER NOT NULL,
    document   TEXT NOT NULL,
    response   TEXT NOT NULL
) STRICT;

-- What the outside is told, once it is handed to the job engine.
CREATE TABLE notices (
    notice_id  TEXT NOT NULL PRIMARY KEY,
    azolla_id  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    dispatched INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Up to when the schedule of an azolla has been looked at.
CREATE TABLE fires (
    azolla_id TEXT NOT NULL PRIMARY KEY,
    fired_at  INTEGER NOT NULL,
    schedule  TEXT NOT NULL -- another one begins anew
) STRICT;

-- What a deadline monitor watches: since when it counts, and whether it has told.
CREATE TABLE deadlines (
    azolla_id        TEXT NOT NULL, -- who watches
    source_azolla_id TEXT NOT NULL,
    objective_id     TEXT NOT NULL,
    urgency          INTEGER NOT NULL,
    due_at           INTEGER,
    since            INTEGER NOT NULL,
    deadline         INTEGER,
    told             INTEGER NOT NULL DEFAULT 0,
    document         TEXT NOT NULL, -- the objective, as it was told
    server           TEXT,
    PRIMARY KEY (azolla_id, source_azolla_id, objective_id)
) STRICT;

-- Which artifacts of an azolla the outside is told of.
ALTER TABLE azollas ADD COLUMN tells TEXT NOT NULL DEFAULT '';

CREATE INDEX captures_to_announce ON captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT announced;
CREATE INDEX captures_waiting ON captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL;
CREATE INDEX captures_waiting_alike ON captures (azolla_id, tries, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL;
CREATE INDEX captures_in_triage ON captures (work_order_id) WHERE status = 'PENDING' AND work_order_id IS NOT NULL;
CREATE INDEX captures_by_age ON captures (created_at, capture_id);
CREATE INDEX candidates_waiting ON candidates (azolla_id, created_at, candidate_id) WHERE status = 'WAITING';
CREATE INDEX candidates_by_age ON candidates (created_at, candidate_id);
CREATE INDEX candidate_captures_of ON candidate_captures (candidate_id);
CREATE INDEX manifests_of_azolla ON manifests (azolla_id, created_at, manifest_id);
CREATE INDEX notices_waiting ON notices (azolla_id, created_at, notice_id) WHERE NOT dispatched;
CREATE INDEX queries_of_event ON queries (event_id, query_id);
CREATE INDEX deadlines_due ON deadlines (azolla_id, deadline) WHERE NOT told AND deadline IS NOT NULL;
CREATE INDEX objectives_changed ON objectives (azolla_id, updated_at, objective_id);
CREATE INDEX objectives_open_changed ON objectives (azolla_id, updated_at, objective_id) WHERE objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed);
CREATE INDEX objectives_open ON objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed);
CREATE INDEX events_open_by_type ON events (azolla_id, type, created_at, event_id) WHERE NOT processed;

-- History never changes: the database itself refuses.
CREATE TRIGGER manifests_stay BEFORE UPDATE ON manifests BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER manifests_kept BEFORE DELETE ON manifests BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER queries_stay BEFORE UPDATE ON queries BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER queries_kept BEFORE DELETE ON queries BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER manifests_first BEFORE INSERT ON manifests
WHEN EXISTS (SELECT 1 FROM manifests WHERE manifest_id = NEW.manifest_id)
  OR EXISTS (SELECT 1 FROM manifests WHERE work_order_id = NEW.work_order_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER queries_first BEFORE INSERT ON queries
WHEN EXISTS (SELECT 1 FROM queries WHERE query_id = NEW.query_id) BEGIN SELECT RAISE(IGNORE); END;
-- What was captured stays as it came, and is looked through once.
CREATE TRIGGER captures_stay BEFORE UPDATE OF capture_id, azolla_id, raw_content, raw_hex, source_label, created_at ON captures
BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER captures_once BEFORE UPDATE OF status, work_order_id ON captures WHEN OLD.status = 'PROCESSED'
BEGIN SELECT RAISE(ABORT, 'a capture is looked through once'); END;
CREATE TRIGGER captures_kept BEFORE DELETE ON captures BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER captures_first BEFORE INSERT ON captures
WHEN EXISTS (SELECT 1 FROM captures WHERE capture_id = NEW.capture_id) BEGIN SELECT RAISE(IGNORE); END;
-- What a person decided about a candidate stands.
CREATE TRIGGER candidates_once BEFORE UPDATE ON candidates WHEN OLD.status <> 'WAITING'
BEGIN SELECT RAISE(ABORT, 'a candidate is decided once'); END;
CREATE TRIGGER candidates_kept BEFORE DELETE ON candidates BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER candidates_first BEFORE INSERT ON candidates
WHEN EXISTS (SELECT 1 FROM candidates WHERE candidate_id = NEW.candidate_id) BEGIN SELECT RAISE(IGNORE); END;
