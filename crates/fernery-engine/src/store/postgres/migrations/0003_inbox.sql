-- A claim is bounded in bytes, and must know them without reading what it does not take.
ALTER TABLE fernery.jobs
    ADD COLUMN payload_bytes integer NOT NULL GENERATED ALWAYS AS (octet_length(payload::text)) STORED;

-- Jobs enqueued inside the transaction of another program: an INSERT from any driver or language. The engine empties the
-- table after the commit; a row that rolls back was never a job. Whoever inserts needs
-- USAGE on the schema and INSERT here, and nothing else.

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
        CONSTRAINT stream_is_a_name CHECK (stream ~ '^[A-Za-z0-9_.:/-]{1,200}$')
        CONSTRAINT stream_is_not_reserved CHECK (stream !~ '^diazotroph:'),
    payload         json NOT NULL
        CONSTRAINT payload_is_an_object CHECK (json_typeof(payload) = 'object')
        CONSTRAINT payload_is_at_most_1_mib CHECK (octet_length(payload::text) <= 1048576),
    job_id          uuid NOT NULL DEFAULT fernery.new_job_id(),
    max_attempts    integer NOT NULL DEFAULT 5
        CONSTRAINT max_attempts_is_1_to_1000 CHECK (max_attempts BETWEEN 1 AND 1000),
    run_at          timestamptz
        CONSTRAINT run_at_is_in_the_calendar CHECK (run_at BETWEEN '1970-01-01Z' AND '9998-01-01Z'),
    unique_key      text COLLATE "C"
        CONSTRAINT unique_key_has_1_to_255_bytes CHECK (octet_length(unique_key) BETWEEN 1 AND 255)
        CONSTRAINT unique_key_is_printable CHECK (unique_key !~ '[[:cntrl:]]'),
    timeout_seconds integer
        CONSTRAINT timeout_is_a_second_to_a_week CHECK (timeout_seconds BETWEEN 1 AND 604800),
    inserted_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload_bytes   integer NOT NULL GENERATED ALWAYS AS (octet_length(payload::text)) STORED
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 100000);

-- What did not become a job of its own, and why: nothing that was inserted disappears without a trace. Rows here are for
-- people to read and to delete.
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

-- The same as an INSERT, for those who want the job's id back. If the unique key is taken when the engine comes to it,
-- that job stands, and this id is found in inbox_refused.
CREATE FUNCTION fernery.enqueue(stream text, payload json, unique_key text DEFAULT NULL,
                                run_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT 5,
                                timeout_seconds integer DEFAULT NULL) RETURNS uuid
    LANGUAGE plpgsql VOLATILE
    AS $$
    DECLARE id uuid := fernery.new_job_id();
    BEGIN
        -- No RETURNING: who may only insert could not read it.
        INSERT INTO fernery.inbox (job_id, stream, payload, unique_key, run_at, max_attempts, timeout_seconds)
        VALUES (id, $1, $2, $3, $4, $5, $6);
        RETURN id;
    END $$;
