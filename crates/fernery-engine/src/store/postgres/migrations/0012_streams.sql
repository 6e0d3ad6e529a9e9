-- Which token used a stream first, and when its counts last changed: streams are limited in number, and an empty one is
-- forgotten some time after its last use. For those that are there, that time begins now.
ALTER TABLE fernery.streams ADD COLUMN opened_by text COLLATE "C";
ALTER TABLE fernery.streams ADD COLUMN used_at timestamptz NOT NULL DEFAULT fernery.fernery_now();

-- For retention: dead letters that are kept for good are many, and no pass is to read them for what is beside them.
DROP INDEX fernery.jobs_by_end;
CREATE INDEX jobs_dead_by_end ON fernery.jobs (ended_at) WHERE ended = 'DEAD';
CREATE INDEX jobs_others_by_end ON fernery.jobs (ended_at) WHERE ended <> 'DEAD';
