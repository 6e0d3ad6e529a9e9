-- The inbox and the manifest. Page `pipeline/mod.rs` says who writes each table.

-- A line that somebody threw into the inbox.
CREATE TABLE fernery.captures (
    capture_id    text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id     text COLLATE "C" NOT NULL,
    raw_content   text NOT NULL, -- as it is shown
    raw_hex       text, -- the bytes, where they are no plain text
    source_label  text NOT NULL,
    status        text COLLATE "C" NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    ready_at      timestamptz NOT NULL, -- when it may be looked through
    entry         bigint NOT NULL DEFAULT 0, -- how often CAPTURE_READY was emitted for it
    announced     boolean NOT NULL DEFAULT false, -- one of those is not processed yet
    tries         bigint NOT NULL DEFAULT 0, -- triages that came to nothing
    work_order_id text COLLATE "C" -- the triage that it is in, or came out of
);

-- What triage made of captures: it waits for a person.
CREATE TABLE fernery.candidates (
    candidate_id  text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id     text COLLATE "C" NOT NULL,
    work_order_id text COLLATE "C",
    document      json NOT NULL, -- title, criteria and so on, as they are now
    made_by       text NOT NULL,
    status        text COLLATE "C" NOT NULL,
    objective_id  text COLLATE "C", -- what it was promoted to
    merged_into   text COLLATE "C",
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);

-- A capture is in one candidate.
CREATE TABLE fernery.candidate_captures (
    capture_id   text COLLATE "C" NOT NULL PRIMARY KEY,
    candidate_id text COLLATE "C" NOT NULL
);

-- What a person should look at, as it was found then.
CREATE TABLE fernery.manifests (
    manifest_id   text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id     text COLLATE "C" NOT NULL,
    work_order_id text COLLATE "C" NOT NULL UNIQUE,
    created_at    timestamptz NOT NULL,
    facts_digest  text COLLATE "C" NOT NULL,
    facts         json NOT NULL,
    built_by      text NOT NULL,
    document      json NOT NULL
);

-- What azollas asked each other, and what was answered.
CREATE TABLE fernery.queries (
    query_id   text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id  text COLLATE "C" NOT NULL, -- who asked
    event_id   text COLLATE "C" NOT NULL, -- for which event
    created_at timestamptz NOT NULL,
    document   json NOT NULL,
    response   json NOT NULL
);

-- What the outside is told, once it is handed to the job engine.
CREATE TABLE fernery.notices (
    notice_id  text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id  text COLLATE "C" NOT NULL,
    kind       text NOT NULL,
    created_at timestamptz NOT NULL,
    dispatched boolean NOT NULL DEFAULT false
);

-- Up to when the schedule of an azolla has been looked at.
CREATE TABLE fernery.fires (
    azolla_id text COLLATE "C" NOT NULL PRIMARY KEY,
    fired_at  timestamptz NOT NULL,
    schedule  text NOT NULL -- another one begins anew
);

-- What a deadline monitor watches: since when it counts, and whether it has told.
CREATE TABLE fernery.deadlines (
    azolla_id        text COLLATE "C" NOT NULL, -- who watches
    source_azolla_id text COLLATE "C" NOT NULL,
    objective_id     text COLLATE "C" NOT NULL,
    urgency          bigint NOT NULL,
    due_at           timestamptz,
    since            timestamptz NOT NULL,
    deadline         timestamptz,
    told             boolean NOT NULL DEFAULT false,
    document         json NOT NULL, -- the objective, as it was told
    server           text,
    PRIMARY KEY (azolla_id, source_azolla_id, objective_id)
);

-- Which artifacts of an azolla the outside is told of.
ALTER TABLE fernery.azollas ADD COLUMN tells text NOT NULL DEFAULT '';

CREATE INDEX captures_to_announce ON fernery.captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT announced;
CREATE INDEX captures_waiting ON fernery.captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL;
CREATE INDEX captures_waiting_alike ON fernery.captures (azolla_id, tries, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL;
CREATE INDEX captures_in_triage ON fernery.captures (work_order_id) WHERE status = 'PENDING' AND work_order_id IS NOT NULL;
CREATE INDEX captures_by_age ON fernery.captures (created_at, capture_id);
CREATE INDEX candidates_waiting ON fernery.candidates (azolla_id, created_at, candidate_id) WHERE status = 'WAITING';
CREATE INDEX candidates_by_age ON fernery.candidates (created_at, candidate_id);
CREATE INDEX candidate_captures_of ON fernery.candidate_captures (candidate_id);
CREATE INDEX manifests_of_azolla ON fernery.manifests (azolla_id, created_at, manifest_id);
CREATE INDEX notices_waiting ON fernery.notices (azolla_id, created_at, notice_id) WHERE NOT dispatched;
CREATE INDEX queries_of_event ON fernery.queries (event_id, query_id);
CREATE INDEX deadlines_due ON fernery.deadlines (azolla_id, deadline) WHERE NOT told AND deadline IS NOT NULL;
CREATE INDEX objectives_changed ON fernery.objectives (azolla_id, updated_at, objective_id);
CREATE INDEX objectives_open_changed ON fernery.objectives (azolla_id, updated_at, objective_id) WHERE objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed);
CREATE INDEX objectives_open ON fernery.objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed);
CREATE INDEX events_open_by_type ON fernery.events (azolla_id, type, created_at, event_id) WHERE NOT processed;

-- History never changes: the database itself refuses.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['manifests', 'queries'] LOOP
        EXECUTE format('CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON fernery.%I FOR EACH ROW
                        EXECUTE FUNCTION fernery.history_never_changes()', name);
        EXECUTE format('CREATE TRIGGER kept BEFORE TRUNCATE ON fernery.%I FOR EACH STATEMENT
                        EXECUTE FUNCTION fernery.history_never_changes()', name);
    END LOOP;
END $$;
-- What was captured stays as it came, and is looked through once.
CREATE TRIGGER stays BEFORE UPDATE OF capture_id, azolla_id, raw_content, raw_hex, source_label, created_at ON fernery.captures
    FOR EACH ROW EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER once BEFORE UPDATE OF status, work_order_id ON fernery.captures
    FOR EACH ROW WHEN (OLD.status = 'PROCESSED') EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER kept BEFORE DELETE ON fernery.captures
    FOR EACH ROW EXECUTE FUNCTION fernery.history_never_changes();
-- What a person decided about a candidate stands.
CREATE TRIGGER once BEFORE UPDATE ON fernery.candidates
    FOR EACH ROW WHEN (OLD.status <> 'WAITING') EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER kept BEFORE DELETE ON fernery.candidates
    FOR EACH ROW EXECUTE FUNCTION fernery.history_never_changes();
