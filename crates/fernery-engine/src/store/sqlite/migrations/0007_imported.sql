-- What came with an import. A capture that came in waiting is held until a person releases it to triage.
ALTER TABLE captures ADD COLUMN held INTEGER NOT NULL DEFAULT 0;

-- Ended attempts of workorders whose jobs were in another instance: there is no job for them here.
CREATE TABLE past_attempts (
    attempt_id    TEXT NOT NULL PRIMARY KEY,
    work_order_id TEXT NOT NULL,
    attempt_no    INTEGER NOT NULL,
    document      TEXT NOT NULL,
    UNIQUE (work_order_id, attempt_no)
) STRICT;
-- What is held is not in the way of those who look for what waits.
DROP INDEX captures_to_announce;
DROP INDEX captures_waiting;
DROP INDEX captures_waiting_alike;
CREATE INDEX captures_to_announce ON captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT announced AND NOT held;
CREATE INDEX captures_waiting ON captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT held;
CREATE INDEX captures_waiting_alike ON captures (azolla_id, tries, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT held;
CREATE INDEX captures_held ON captures (azolla_id, capture_id) WHERE held;
-- For an export, which reads all of them.
CREATE INDEX manifests_by_age ON manifests (created_at, manifest_id);
CREATE INDEX queries_by_age ON queries (created_at, query_id);
CREATE INDEX objectives_standing ON objectives (created_at, objective_id) WHERE objective_type = 'STANDING';
-- The weightiest are read in this order, and no further than the limit; `objectives_open` has the others.
CREATE INDEX objectives_done ON objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND status = 'DONE' AND NOT unconfirmed;

CREATE TRIGGER past_attempts_stay BEFORE UPDATE ON past_attempts BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER past_attempts_kept BEFORE DELETE ON past_attempts BEGIN SELECT RAISE(ABORT, 'history never changes'); END;
CREATE TRIGGER past_attempts_first BEFORE INSERT ON past_attempts
WHEN EXISTS (SELECT 1 FROM past_attempts WHERE attempt_id = NEW.attempt_id)
  OR EXISTS (SELECT 1 FROM past_attempts WHERE work_order_id = NEW.work_order_id AND attempt_no = NEW.attempt_no)
BEGIN SELECT RAISE(IGNORE); END;
