-- Redis Streams as transport: what is owed to it, and how far it has got. A message is a hint; nothing here decides.

-- Messages to be sent, one row for all jobs of a stream that one statement made claimable. Written with them, deleted once
-- they were sent.
CREATE TABLE fernery.outbox (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream   text COLLATE "C" NOT NULL,
    job_ids  uuid[] NOT NULL,
    places   bigint[] NOT NULL,
    versions bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 100000);

-- The newest message of each stream: a stream whose own newest is older has lost some.
CREATE TABLE fernery.relayed (
    stream    text COLLATE "C" PRIMARY KEY,
    newest_ms bigint NOT NULL,
    newest_n  bigint NOT NULL
) WITH (fillfactor = 50);

-- Streams whose waiting jobs are to be told of again: those from next_place to last_place.
CREATE TABLE fernery.reemissions (
    stream     text COLLATE "C" PRIMARY KEY,
    next_place bigint NOT NULL,
    last_place bigint NOT NULL
);

-- The message that a lease was claimed by, where there was one.
ALTER TABLE fernery.leases ADD COLUMN message_ms bigint, ADD COLUMN message_n bigint;
