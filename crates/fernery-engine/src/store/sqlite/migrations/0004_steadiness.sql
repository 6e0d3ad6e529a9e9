-- When a process last said that it hosts an azolla: what nobody hosts is shown as such.
ALTER TABLE azollas ADD COLUMN hosted_at INTEGER;
CREATE INDEX blueprints_of_azolla ON blueprints (azolla_id, created_at);

-- INSERT OR REPLACE deletes the row in its way, past the triggers that keep it. So what is there stays, whoever comes with
-- the same key; an insert-or-read finds it as before.
CREATE TRIGGER blueprints_first BEFORE INSERT ON blueprints
WHEN EXISTS (SELECT 1 FROM blueprints WHERE blueprint = NEW.blueprint) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER decisions_first BEFORE INSERT ON decisions
WHEN EXISTS (SELECT 1 FROM decisions WHERE record_id = NEW.record_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER snapshots_first BEFORE INSERT ON snapshots
WHEN EXISTS (SELECT 1 FROM snapshots WHERE snapshot_id = NEW.snapshot_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER bundles_first BEFORE INSERT ON bundles
WHEN EXISTS (SELECT 1 FROM bundles WHERE output_id = NEW.output_id)
  OR EXISTS (SELECT 1 FROM bundles WHERE work_order_id = NEW.work_order_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER runs_first BEFORE INSERT ON runs
WHEN EXISTS (SELECT 1 FROM runs WHERE run_id = NEW.run_id)
  OR EXISTS (SELECT 1 FROM runs WHERE work_order_id = NEW.work_order_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER pauses_first BEFORE INSERT ON pauses
WHEN EXISTS (SELECT 1 FROM pauses WHERE pause_key = NEW.pause_key) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER journal_first BEFORE INSERT ON journal
WHEN EXISTS (SELECT 1 FROM journal WHERE entry_id = NEW.entry_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER seals_first BEFORE INSERT ON seals
WHEN EXISTS (SELECT 1 FROM seals WHERE place = NEW.place)
  OR EXISTS (SELECT 1 FROM seals WHERE entry_id = NEW.entry_id) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER events_first BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE event_id = NEW.event_id)
  OR EXISTS (SELECT 1 FROM events WHERE type = NEW.type AND resource_id = NEW.resource_id AND entry = NEW.entry)
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER workorders_first BEFORE INSERT ON workorders
WHEN EXISTS (SELECT 1 FROM workorders WHERE work_order_id = NEW.work_order_id)
  OR EXISTS (SELECT 1 FROM workorders WHERE event_id = NEW.event_id)
  OR EXISTS (SELECT 1 FROM workorders WHERE objective_id = NEW.objective_id AND NOT judged)
BEGIN SELECT RAISE(ABORT, 'an event has one workorder, and an objective one under way'); END;
