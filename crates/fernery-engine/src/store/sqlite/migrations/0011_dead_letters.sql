-- The dead-letter queue by death, newest first: a page costs the same however many jobs are dead.
CREATE INDEX dead_letters_by_death ON dead_letters (buried_at, job_id);
