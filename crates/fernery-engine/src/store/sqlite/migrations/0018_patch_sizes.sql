-- How large what a run judged is: who estimates the time of its review need not read the patch. Runs that earlier versions judged
-- have none.
ALTER TABLE runs ADD COLUMN files INTEGER;
ALTER TABLE runs ADD COLUMN insertions INTEGER;
ALTER TABLE runs ADD COLUMN deletions INTEGER;
