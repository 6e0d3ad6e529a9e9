-- What people do themselves, put off, and write down once for many times.

-- Until when a person does not want to see something. It is about what is shown, and changes nothing else.
CREATE TABLE snoozes (
    kind       TEXT    NOT NULL,        -- objective or candidate
    subject_id TEXT    NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (kind, subject_id)
) STRICT, WITHOUT ROWID;
-- Those that have not passed are counted, and those that have are deleted.
CREATE INDEX snoozes_by_end ON snoozes (kind, until, subject_id);

-- A line that is captured again and again. A row is there once for the capture that it was read from.
CREATE TABLE recurrences (
    recurrence_id TEXT    NOT NULL PRIMARY KEY, -- that capture
    azolla_id     TEXT    NOT NULL,
    every         TEXT    NOT NULL,             -- as it was said
    text          TEXT    NOT NULL,             -- what is captured each time
    schedule      TEXT    NOT NULL,
    next_at       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    stopped_at    INTEGER,
    held          INTEGER NOT NULL DEFAULT 0    -- it was imported, and captures nothing until an operator releases it
) STRICT;
CREATE INDEX recurrences_live ON recurrences (azolla_id, next_at, recurrence_id) WHERE stopped_at IS NULL;
CREATE INDEX recurrences_due ON recurrences (azolla_id, next_at, recurrence_id) WHERE stopped_at IS NULL AND NOT held;

-- How urgent a candidate is and when it is due, as its document says: what presses is found without reading all of them.
ALTER TABLE candidates ADD COLUMN urgency INTEGER NOT NULL DEFAULT 4;
ALTER TABLE candidates ADD COLUMN due_at INTEGER;
-- A decision stands, but what was discarded can be taken back.
DROP TRIGGER candidates_once;
-- A date that no calendar has is no date: SQLite would count on into the next month.
UPDATE candidates SET urgency = coalesce(json_extract(document, '$.urgency'), 4),
    due_at = (SELECT CASE
                  WHEN said < '1970' OR said >= '9999' OR date(substr(said, 1, 10)) <> substr(said, 1, 10) THEN NULL
                  WHEN said GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]' THEN unixepoch(said || 'T23:59:59Z') * 1000
                  WHEN substr(said, 12, 2) < '24'
                       AND (said GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]*Z'
                            OR said GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]*[+-][0-9][0-9]:[0-9][0-9]')
                      THEN CAST(round((julianday(said) - 2440587.5) * 86400000.0) AS INTEGER)
                  END
              FROM (SELECT upper(json_extract(document, '$.metadata.due_at')) AS said))
WHERE status = 'WAITING';
CREATE TRIGGER candidates_once BEFORE UPDATE ON candidates
WHEN OLD.status <> 'WAITING' AND NOT (OLD.status = 'DISCARDED' AND NEW.status = 'WAITING')
BEGIN SELECT RAISE(ABORT, 'a candidate is decided once'); END;
CREATE INDEX candidates_pressing ON candidates (azolla_id, urgency, created_at, candidate_id) WHERE status = 'WAITING';
CREATE INDEX candidates_due ON candidates (azolla_id, due_at, candidate_id) WHERE status = 'WAITING' AND due_at IS NOT NULL;

-- Cancelled tickets are never finished, and are not in the way of those who look for what is open.
DROP INDEX objectives_open;
CREATE INDEX objectives_open ON objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed) AND coalesce(blocked_reason, '') <> 'cancelled';
CREATE INDEX objectives_cancelled ON objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND blocked_reason = 'cancelled';
-- What stopped and waits for a person, apart from all that is open.
CREATE INDEX objectives_stopped ON objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND (status = 'BLOCKED' OR unconfirmed) AND coalesce(blocked_reason, '') <> 'cancelled';
