-- How large what a run judged is: who estimates the time of its review need not read the patch. Runs that earlier versions judged
-- have none.
ALTER TABLE fernery.runs ADD COLUMN files bigint, ADD COLUMN insertions bigint, ADD COLUMN deletions bigint;
