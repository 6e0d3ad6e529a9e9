-- The pipeline. Page `pipeline/mod.rs` says who writes each table. Documents are the artifacts as their schemas have them;
-- columns beside them are what the control plane looks things up by.

CREATE TABLE fernery.azollas (
    azolla_id  text COLLATE "C" NOT NULL PRIMARY KEY,
    blueprint  text COLLATE "C" NOT NULL, -- the one in force
    updated_at timestamptz NOT NULL
);

CREATE TABLE fernery.blueprints (
    blueprint  text COLLATE "C" NOT NULL PRIMARY KEY, -- digest of the document
    azolla_id  text COLLATE "C" NOT NULL,
    document   json NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE fernery.objectives (
    objective_id        text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id           text COLLATE "C" NOT NULL,
    title               text NOT NULL,
    acceptance_criteria text NOT NULL,
    objective_type      text NOT NULL,
    status              text COLLATE "C" NOT NULL,
    importance          bigint NOT NULL,
    urgency             bigint NOT NULL,
    blocked_reason      text,
    metadata            json NOT NULL,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    entry               bigint NOT NULL DEFAULT 0, -- how often it has entered TODO
    emitted             bigint NOT NULL DEFAULT 0, -- for which entry TICKET_READY was emitted
    approval            text, -- the decision that covers it
    unconfirmed         boolean NOT NULL DEFAULT false, -- DONE by the gate, and no person has looked
    failures            bigint NOT NULL DEFAULT 0, -- gate failures since it was approved
    attempts            bigint NOT NULL DEFAULT 0, -- what the envelope counts, since it was approved
    wall_ms             bigint NOT NULL DEFAULT 0,
    tokens              bigint NOT NULL DEFAULT 0,
    cost_usd_micros     bigint NOT NULL DEFAULT 0
);
CREATE INDEX objectives_by_age ON fernery.objectives (created_at, objective_id);
CREATE INDEX objectives_by_status ON fernery.objectives (azolla_id, status, created_at, objective_id);
CREATE INDEX objectives_to_emit ON fernery.objectives (azolla_id, updated_at, objective_id) WHERE status = 'TODO' AND emitted < entry;
CREATE INDEX objectives_to_confirm ON fernery.objectives (azolla_id) WHERE unconfirmed;

CREATE TABLE fernery.blockers (
    objective_id text COLLATE "C" NOT NULL,
    place        bigint NOT NULL,
    blocker_id   text COLLATE "C" NOT NULL,
    kind         text NOT NULL,
    description  text NOT NULL,
    resolved     boolean NOT NULL,
    PRIMARY KEY (objective_id, place)
);

-- What operators decided: approvals, confirmations, reopenings.
CREATE TABLE fernery.decisions (
    record_id    text COLLATE "C" NOT NULL PRIMARY KEY,
    objective_id text COLLATE "C" NOT NULL,
    kind         text NOT NULL,
    digest       text NOT NULL,
    shown        json NOT NULL, -- exactly what the digest is of
    who          text NOT NULL,
    note         text,
    created_at   timestamptz NOT NULL
);
CREATE INDEX decisions_of_objective ON fernery.decisions (objective_id, created_at);

CREATE TABLE fernery.events (
    event_id      text COLLATE "C" NOT NULL PRIMARY KEY,
    azolla_id     text COLLATE "C" NOT NULL,
    type          text COLLATE "C" NOT NULL,
    resource_id   text COLLATE "C" NOT NULL,
    entry         bigint NOT NULL,
    created_at    timestamptz NOT NULL,
    processed     boolean NOT NULL DEFAULT false,
    processed_at  timestamptz,
    reason        text,
    work_order_id text,
    claim_version bigint NOT NULL DEFAULT 0,
    UNIQUE (type, resource_id, entry)
);
CREATE INDEX events_open ON fernery.events (azolla_id, created_at, event_id) WHERE NOT processed;
CREATE INDEX events_by_age ON fernery.events (created_at, event_id);

CREATE TABLE fernery.snapshots (
    snapshot_id  text COLLATE "C" NOT NULL PRIMARY KEY,
    objective_id text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    document     json NOT NULL
);

CREATE TABLE fernery.workorders (
    work_order_id   text COLLATE "C" NOT NULL PRIMARY KEY,
    objective_id    text COLLATE "C" NOT NULL,
    azolla_id       text COLLATE "C" NOT NULL,
    event_id        text COLLATE "C" NOT NULL UNIQUE,
    diazotroph_type text NOT NULL,
    snapshot_id     text COLLATE "C" NOT NULL,
    branch_name     text,
    budget_ms       bigint NOT NULL,
    created_at      timestamptz NOT NULL,
    status          text COLLATE "C" NOT NULL,
    blueprint       text COLLATE "C" NOT NULL,
    spent_ms        bigint NOT NULL DEFAULT 0,
    executed_at     timestamptz,
    output_id       text,
    judged          boolean NOT NULL DEFAULT false,
    gate_tries      bigint NOT NULL DEFAULT 0,
    gate_not_before timestamptz,
    cancelled       boolean NOT NULL DEFAULT false,
    claim_version   bigint NOT NULL DEFAULT 0
);
CREATE INDEX workorders_active ON fernery.workorders (azolla_id, work_order_id) WHERE NOT judged;
CREATE INDEX workorders_to_judge ON fernery.workorders (azolla_id, executed_at, work_order_id) WHERE NOT judged AND status = 'EXECUTED';
CREATE INDEX workorders_to_cancel ON fernery.workorders (work_order_id) WHERE cancelled AND status = 'CREATED';
-- An objective has one workorder under way at most.
CREATE UNIQUE INDEX workorders_one_active ON fernery.workorders (objective_id) WHERE NOT judged;
CREATE INDEX workorders_of_objective ON fernery.workorders (objective_id, created_at);
CREATE INDEX workorders_by_age ON fernery.workorders (created_at, work_order_id);

CREATE TABLE fernery.bundles (
    output_id     text COLLATE "C" NOT NULL PRIMARY KEY,
    work_order_id text COLLATE "C" NOT NULL UNIQUE,
    objective_id  text COLLATE "C" NOT NULL,
    created_at    timestamptz NOT NULL,
    document      json NOT NULL
);

CREATE TABLE fernery.runs (
    run_id        text COLLATE "C" NOT NULL PRIMARY KEY,
    work_order_id text COLLATE "C" NOT NULL UNIQUE,
    objective_id  text COLLATE "C" NOT NULL,
    azolla_id     text COLLATE "C" NOT NULL,
    created_at    timestamptz NOT NULL,
    document      json NOT NULL,
    evidence      json NOT NULL
);
CREATE INDEX runs_of_objective ON fernery.runs (objective_id, created_at);
CREATE INDEX runs_by_age ON fernery.runs (created_at, run_id);

CREATE TABLE fernery.pauses (
    pause_key    text COLLATE "C" NOT NULL PRIMARY KEY, -- what it is about: there is one pause for it
    objective_id text COLLATE "C" NOT NULL,
    azolla_id    text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    document     json NOT NULL
);
CREATE INDEX pauses_of_objective ON fernery.pauses (objective_id, created_at);
CREATE INDEX pauses_by_age ON fernery.pauses (created_at, pause_key);

-- Leases of polling workers. A running workorder's is in `leases`, as every job's.
CREATE TABLE fernery.claims (
    resource_type    text COLLATE "C" NOT NULL,
    resource_id      text COLLATE "C" NOT NULL,
    owner_id         text COLLATE "C" NOT NULL,
    lease_expires_at timestamptz NOT NULL,
    heartbeat_at     timestamptz NOT NULL,
    claim_version    bigint NOT NULL,
    PRIMARY KEY (resource_type, resource_id)
);

CREATE TABLE fernery.journal (
    entry_id   text COLLATE "C" NOT NULL PRIMARY KEY,
    created_at timestamptz NOT NULL,
    actor      text NOT NULL,
    act        text NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    why        json NOT NULL
);
CREATE INDEX journal_of_subject ON fernery.journal (subject, created_at);
CREATE INDEX journal_by_age ON fernery.journal (created_at, entry_id);
CREATE TABLE fernery.unsealed (entry_id text COLLATE "C" NOT NULL PRIMARY KEY);
CREATE TABLE fernery.seals (
    place    bigint NOT NULL PRIMARY KEY,
    entry_id text COLLATE "C" NOT NULL UNIQUE,
    hash     text NOT NULL
);

-- History never changes: the database itself refuses.
CREATE FUNCTION fernery.history_never_changes() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'history never changes' USING ERRCODE = 'restrict_violation'; END $$;
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['blueprints', 'decisions', 'snapshots', 'bundles', 'runs', 'pauses', 'journal', 'seals'] LOOP
        EXECUTE format('CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON fernery.%I FOR EACH ROW
                        EXECUTE FUNCTION fernery.history_never_changes()', name);
        EXECUTE format('CREATE TRIGGER kept BEFORE TRUNCATE ON fernery.%I FOR EACH STATEMENT
                        EXECUTE FUNCTION fernery.history_never_changes()', name);
    END LOOP;
END $$;
-- An event is processed once, and a workorder executed and judged once.
CREATE TRIGGER once BEFORE UPDATE OF processed, reason, work_order_id ON fernery.events
    FOR EACH ROW WHEN (OLD.processed) EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER once BEFORE UPDATE OF status, output_id ON fernery.workorders
    FOR EACH ROW WHEN (OLD.status = 'EXECUTED') EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER judged_once BEFORE UPDATE OF judged ON fernery.workorders
    FOR EACH ROW WHEN (OLD.judged) EXECUTE FUNCTION fernery.history_never_changes();
-- They hold the keys that exclude a second one.
CREATE TRIGGER kept BEFORE DELETE ON fernery.events
    FOR EACH ROW EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER kept BEFORE DELETE ON fernery.workorders
    FOR EACH ROW EXECUTE FUNCTION fernery.history_never_changes();
