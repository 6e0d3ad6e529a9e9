-- Which token used a stream first, and when its counts last changed: streams are limited in number, and an empty one is
-- forgotten some time after its last use. For those that are there, that time begins now.
ALTER TABLE streams ADD COLUMN opened_by TEXT;
ALTER TABLE streams ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
UPDATE streams SET used_at = max((SELECT value FROM marks WHERE name = 'clock'), unixepoch() * 1000);
