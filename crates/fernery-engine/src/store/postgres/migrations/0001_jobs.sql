-- Jobs, their leases and their history. Which verb moves what is said on the page of the `store` module.

-- The one clock: every instant that decides something is read here, inside the statement that uses it.
CREATE FUNCTION fernery.fernery_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE
    AS $$ SELECT date_trunc('milliseconds', clock_timestamp()) $$;

-- A job's place in line. Without a cache: two connections would otherwise draw from blocks of their own, and a later
-- job would stand before an earlier one.
CREATE SEQUENCE fernery.places AS bigint;

CREATE TABLE fernery.jobs (
    job_id        uuid PRIMARY KEY,
    stream        text COLLATE "C" NOT NULL,
    payload       json NOT NULL,
    max_attempts  integer NOT NULL,
    timeout_ms    bigint,
    unique_key    text COLLATE "C",
    producer      text COLLATE "C",
    content_hash  bytea,
    created_at    timestamptz NOT NULL,
    run_at        timestamptz NOT NULL,
    seq           bigint NOT NULL,
    ended         text CHECK (ended IN ('DEAD', 'CANCELLED')),
    ended_at      timestamptz,
    claim_version bigint NOT NULL
);
-- For retention.
CREATE INDEX jobs_by_end ON fernery.jobs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE fernery.ready (
    stream        text COLLATE "C" NOT NULL,
    seq           bigint NOT NULL,
    job_id        uuid NOT NULL,
    ready_at      timestamptz NOT NULL,
    claim_version bigint NOT NULL,
    attempt_no    integer NOT NULL,
    failed        integer NOT NULL,
    lost          integer NOT NULL,
    released      integer NOT NULL,
    PRIMARY KEY (stream, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 100000);

CREATE TABLE fernery.scheduled (
    job_id        uuid PRIMARY KEY,
    stream        text COLLATE "C" NOT NULL,
    seq           bigint NOT NULL,
    due_at        timestamptz NOT NULL,
    claim_version bigint NOT NULL,
    attempt_no    integer NOT NULL,
    failed        integer NOT NULL,
    lost          integer NOT NULL,
    released      integer NOT NULL
);
CREATE INDEX scheduled_by_time ON fernery.scheduled (due_at);

-- No index on expires_at: a heartbeat then changes no indexed column, stays on its page and leaves the index alone. The
-- reaper reads the whole table, which is as small as what runs now.
CREATE TABLE fernery.leases (
    resource_id      uuid PRIMARY KEY,
    resource_type    smallint NOT NULL DEFAULT 0,
    attempt_id       uuid,
    token_hash       bytea,
    owner_id         text NOT NULL,
    stream           text COLLATE "C" NOT NULL,
    seq              bigint NOT NULL,
    ready_at         timestamptz NOT NULL,
    started_at       timestamptz NOT NULL,
    heartbeat_at     timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    timeout_at       timestamptz,
    claim_version    bigint NOT NULL,
    attempt_no       integer NOT NULL,
    failed           integer NOT NULL,
    lost             integer NOT NULL,
    released         integer NOT NULL,
    max_attempts     integer NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    unique_key       text COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 100000);

CREATE TABLE fernery.attempts (
    job_id        uuid NOT NULL,
    attempt_no    integer NOT NULL,
    attempt_id    uuid NOT NULL,
    token_hash    bytea NOT NULL,
    worker_id     text NOT NULL,
    started_at    timestamptz NOT NULL,
    finished_at   timestamptz NOT NULL,
    outcome       text NOT NULL,
    status        text NOT NULL,
    claim_version bigint NOT NULL,
    result        json,
    error         json,
    PRIMARY KEY (job_id, attempt_no)
);
-- For retention: attempts are appended as they end, so a range of pages is a range of time.
CREATE INDEX attempts_by_end ON fernery.attempts USING brin (finished_at) WITH (autosummarize = on);

CREATE TABLE fernery.dead_letters (
    job_id    uuid PRIMARY KEY,
    stream    text COLLATE "C" NOT NULL,
    buried_at timestamptz NOT NULL,
    reason    text NOT NULL,
    code      text NOT NULL
);

CREATE TABLE fernery.unique_keys (
    key    text COLLATE "C" PRIMARY KEY,
    job_id uuid NOT NULL
);

-- The counts of a stream are its row here plus its rows in stream_deltas.
CREATE TABLE fernery.streams (
    name      text COLLATE "C" PRIMARY KEY,
    paused    boolean NOT NULL DEFAULT false,
    ready     bigint NOT NULL DEFAULT 0,
    scheduled bigint NOT NULL DEFAULT 0,
    running   bigint NOT NULL DEFAULT 0,
    succeeded bigint NOT NULL DEFAULT 0,
    dead      bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Appended by every batch, so that two batches never wait for each other over a count; folded in the background.
CREATE TABLE fernery.stream_deltas (
    stream    text COLLATE "C" NOT NULL,
    ready     bigint NOT NULL DEFAULT 0,
    scheduled bigint NOT NULL DEFAULT 0,
    running   bigint NOT NULL DEFAULT 0,
    succeeded bigint NOT NULL DEFAULT 0,
    dead      bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 100000);

CREATE TABLE fernery.tokens (
    token_id    text COLLATE "C" PRIMARY KEY,
    name        text NOT NULL,
    role        text NOT NULL,
    streams     text[] NOT NULL,
    secret_hash bytea NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz
);

-- Where a job stands: leased, waiting, or ended. Each lookup is by key and fenced by LIMIT, so that no statistics can talk
-- the planner into reading a whole table for a handful of jobs.
CREATE VIEW fernery.job_standing AS
SELECT j.job_id, j.stream, j.max_attempts, j.created_at, coalesce(s.due_at, j.run_at) AS run_at, j.producer,
       l.resource_id IS NOT NULL AS leased, r.job_id IS NOT NULL OR s.job_id IS NOT NULL AS waiting,
       j.ended, j.ended_at, a.outcome AS last_outcome, a.finished_at AS last_finished_at
FROM fernery.jobs j
LEFT JOIN LATERAL (
    SELECT resource_id FROM fernery.leases WHERE resource_id = j.job_id LIMIT 1
) l ON true
LEFT JOIN LATERAL (
    SELECT job_id FROM fernery.ready WHERE stream = j.stream AND seq = j.seq AND job_id = j.job_id LIMIT 1
) r ON true
LEFT JOIN LATERAL (
    SELECT job_id, due_at FROM fernery.scheduled WHERE job_id = j.job_id LIMIT 1
) s ON true
LEFT JOIN LATERAL (
    SELECT outcome, finished_at FROM fernery.attempts WHERE job_id = j.job_id ORDER BY attempt_no DESC LIMIT 1
) a ON true;
