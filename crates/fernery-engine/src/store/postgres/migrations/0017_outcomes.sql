-- The dead-letter queue of a stream, of an error code and of both, newest first.
CREATE INDEX dead_letters_of_stream ON fernery.dead_letters (stream, buried_at, job_id);
CREATE INDEX dead_letters_of_code ON fernery.dead_letters (code, buried_at, job_id);
CREATE INDEX dead_letters_of_both ON fernery.dead_letters (stream, code, buried_at, job_id);
-- How the executor of a run said that it ended, beside its record: who reads pauses need not read bundles. Runs that earlier versions
-- judged have none; their bundles say it. Last, so that nobody who reads runs waits for the indexes.
ALTER TABLE fernery.runs ADD COLUMN outcome text;
