-- The next attempt of a workorder has what is left of its budget.
UPDATE fernery.jobs SET timeout_ms = $2 WHERE job_id = $1;
