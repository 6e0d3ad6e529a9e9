-- What came with an import. A capture that came in waiting is held until a person releases it to triage.
ALTER TABLE fernery.captures ADD COLUMN held boolean NOT NULL DEFAULT false;

-- Ended attempts of workorders whose jobs were in another instance: there is no job for them here.
CREATE TABLE fernery.past_attempts (
    attempt_id    text COLLATE "C" NOT NULL PRIMARY KEY,
    work_order_id text COLLATE "C" NOT NULL,
    attempt_no    bigint NOT NULL,
    document      json NOT NULL,
    UNIQUE (work_order_id, attempt_no)
);
-- What is held is not in the way of those who look for what waits.
DROP INDEX fernery.captures_to_announce;
DROP INDEX fernery.captures_waiting;
DROP INDEX fernery.captures_waiting_alike;
CREATE INDEX captures_to_announce ON fernery.captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT announced AND NOT held;
CREATE INDEX captures_waiting ON fernery.captures (azolla_id, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT held;
CREATE INDEX captures_waiting_alike ON fernery.captures (azolla_id, tries, ready_at, capture_id) WHERE status = 'PENDING' AND work_order_id IS NULL AND NOT held;
CREATE INDEX captures_held ON fernery.captures (azolla_id, capture_id) WHERE held;
-- For an export, which reads all of them.
CREATE INDEX manifests_by_age ON fernery.manifests (created_at, manifest_id);
CREATE INDEX queries_by_age ON fernery.queries (created_at, query_id);
CREATE INDEX objectives_standing ON fernery.objectives (created_at, objective_id) WHERE objective_type = 'STANDING';
-- The weightiest are read in this order, and no further than the limit; `objectives_open` has the others.
CREATE INDEX objectives_done ON fernery.objectives (azolla_id, importance, urgency, created_at, objective_id) WHERE objective_type = 'TICKET' AND status = 'DONE' AND NOT unconfirmed;

CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON fernery.past_attempts FOR EACH ROW
    EXECUTE FUNCTION fernery.history_never_changes();
CREATE TRIGGER kept BEFORE TRUNCATE ON fernery.past_attempts FOR EACH STATEMENT
    EXECUTE FUNCTION fernery.history_never_changes();
