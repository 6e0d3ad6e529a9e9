-- Jobs enqueued inside the transaction of another program: an INSERT from any driver or language. The engine empties the
-- table after the commit; a row that rolls back was never a job. Whoever inserts needs USAGE on the schema and INSERT here.

-- Time-ordered, as the ids that the engine makes itself (UUID version 7).
CREATE FUNCTION fernery.new_job_id() RETURNS uuid
    LANGUAGE sql VOLATILE
    AS $$
        SELECT encode(
            set_bit(set_bit(
                overlay(uuid_send(gen_random_uuid())
                        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                        FROM 1 FOR 6),
                52, 1), 53, 1),
            'hex')::uuid
    $$;

CREATE TABLE fernery.inbox (
    inbox_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream          text COLLATE "C" NOT NULL
        CONSTRAINT stream_is_a_name CHECK (stream ~ '^[A-Za-z0-9_.:/-]{1,200}$'),
    payload         json NOT NULL
        CONSTRAINT payload_is_an_object CHECK (json_typeof(payload) = 'object')
        CONSTRAINT payload_is_at_most_1_mib CHECK (octet_length(payload::text) <= 1048576),
    job_id          uuid NOT NULL DEFAULT fernery.new_job_id(),
    max_attempts    integer NOT NULL DEFAULT 5
        CONSTRAINT max_attempts_is_1_to_1000 CHECK (max_attempts BETWEEN 1 AND 1000),
    run_at          timestamptz,
    unique_key      text COLLATE "C"
        CONSTRAINT unique_key_has_1_to_255_bytes CHECK (octet_length(unique_key) BETWEEN 1 AND 255),
    timeout_seconds integer
        CONSTRAINT timeout_is_a_second_to_a_week CHECK (timeout_seconds BETWEEN 1 AND 604800),
    inserted_at     timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 100000);

-- What the engine could not take: nothing that was inserted disappears without a trace.
CREATE TABLE fernery.inbox_refused (
    inbox_id        bigint PRIMARY KEY,
    stream          text NOT NULL,
    payload         json NOT NULL,
    job_id          uuid NOT NULL,
    max_attempts    integer NOT NULL,
    run_at          timestamptz,
    unique_key      text,
    timeout_seconds integer,
    inserted_at     timestamptz NOT NULL,
    reason          text NOT NULL,
    refused_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION fernery.inbox_filled() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN PERFORM pg_notify('fernery_inbox', ''); RETURN NULL; END $$;

CREATE TRIGGER inbox_filled AFTER INSERT ON fernery.inbox
    FOR EACH STATEMENT EXECUTE FUNCTION fernery.inbox_filled();

-- The same as an INSERT, for those who want the job's id back.
CREATE FUNCTION fernery.enqueue(stream text, payload json, unique_key text DEFAULT NULL,
                                run_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT 5,
                                timeout_seconds integer DEFAULT NULL) RETURNS uuid
    LANGUAGE sql VOLATILE
    AS $$
        INSERT INTO fernery.inbox (stream, payload, unique_key, run_at, max_attempts, timeout_seconds)
        VALUES ($1, $2, $3, $4, $5, $6)
        RETURNING job_id
    $$;
