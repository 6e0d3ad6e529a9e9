-- What people do themselves, put off, and write down once for many times.

-- Until when a person does not want to see something. It is about what is shown, and changes nothing else.
CREATE TABLE fernery.snoozes (
    kind       text COLLATE "C" NOT NULL, -- objective or candidate
    subject_id text COLLATE "C" NOT NULL,
    until      timestamptz NOT NULL,
    PRIMARY KEY (kind, subject_id)
);
-- Those that have not passed are counted, and those that have are deleted.
CREATE INDEX snoozes_by_end ON fernery.snoozes (kind, until, subject_id);

-- A line that is captured again and again. A row is there once for the capture that it was read from.
CREATE TABLE fernery.recurrences (
    recurrence_id text COLLATE "C" NOT NULL PRIMARY KEY, -- that capture
    azolla_id     text COLLATE "C" NOT NULL,
    every         text NOT NULL, -- as it was said
    text          text NOT NULL, -- what is captured each time
    schedule      text NOT NULL,
    next_at       timestamptz NOT NULL,
    created_at    timestamptz NOT NULL,
    stopped_at    timestamptz,
    held          boolean NOT NULL DEFAULT false -- it was imported, and captures nothing until an operator releases it
);
CREATE INDEX recurrences_live ON fernery.recurrences (azolla_id, next_at, recurrence_id) WHERE stopped_at IS NULL;
CREATE INDEX recurrences_due ON fernery.recurrences (azolla_id, next_at, recurrence_id) WHERE stopped_at IS NULL AND NOT held;

-- How urgent a candidate is and when it is due, as its document says: what presses is found without reading all of them.
ALTER TABLE fernery.candidates ADD COLUMN urgency bigint NOT NULL DEFAULT 4;
ALTER TABLE fernery.candidates ADD COLUMN due_at timestamptz;
-- A decision stands, but what was discarded can be taken back.
DROP TRIGGER once ON fernery.candidates;
-- A date that no calendar has is no date, and does not end the upgrade.
CREATE FUNCTION fernery.due_taken_over(said text) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    IF said < '1970' OR said >= '9999' THEN
        RETURN NULL;
    ELSIF said ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' THEN
        RETURN (said || 'T23:59:59Z')::timestamptz;
    ELSIF said ~* '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})$' THEN
        RETURN date_trunc('milliseconds', said::timestamptz);
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
UPDATE fernery.candidates SET urgency = coalesce((document ->> 'urgency')::bigint, 4),
    due_at = fernery.due_taken_over(document -> 'metadata' ->> 'due_at')
WHERE status = 'WAITING';
DROP FUNCTION fernery.due_taken_over(text);
CREATE TRIGGER once BEFORE UPDATE ON fernery.candidates
    FOR EACH ROW WHEN (OLD.status <> 'WAITING' AND NOT (OLD.status = 'DISCARDED' AND NEW.status = 'WAITING'))
    EXECUTE FUNCTION fernery.history_never_changes();
CREATE INDEX candidates_pressing ON fernery.candidates (azolla_id, urgency, created_at, candidate_id) WHERE status = 'WAITING';
CREATE INDEX candidates_due ON fernery.candidates (azolla_id, due_at, candidate_id) WHERE status = 'WAITING' AND due_at IS NOT NULL;

-- Cancelled tickets are never finished, and are not in the way of those who look for what is open.
DROP INDEX fernery.objectives_open;
CREATE INDEX objectives_open ON fernery.objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed) AND coalesce(blocked_reason, '') <> 'cancelled';
CREATE INDEX objectives_cancelled ON fernery.objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND blocked_reason = 'cancelled';
-- What stopped and waits for a person, apart from all that is open.
CREATE INDEX objectives_stopped ON fernery.objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND (status = 'BLOCKED' OR unconfirmed) AND coalesce(blocked_reason, '') <> 'cancelled';
