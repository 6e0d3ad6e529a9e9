-- The processes that serve this database, each with what it says of itself. Nothing is decided by it.
CREATE TABLE fernery.processes (
    process_id            uuid PRIMARY KEY,
    host                  text NOT NULL,
    pid                   integer NOT NULL,
    url                   text NOT NULL,
    version               text NOT NULL,
    schema_version        integer NOT NULL,
    lease_ttl_ms          bigint NOT NULL,
    heartbeat_interval_ms bigint NOT NULL,
    reap_interval_ms      bigint NOT NULL,
    transport             text NOT NULL,
    started_at            timestamptz NOT NULL,
    seen_at               timestamptz NOT NULL
) WITH (fillfactor = 50);
