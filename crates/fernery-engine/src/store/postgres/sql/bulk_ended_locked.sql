-- Locks those of these jobs that ended so and before $3: one that was started over meanwhile, and may have ended again, is not
-- meant.
SELECT job_id FROM fernery.jobs
WHERE job_id = ANY ($1::uuid[]) AND ended = $2 AND ended_at < $3
ORDER BY job_id
FOR UPDATE;
