-- Locks ended jobs before anything else of them is read: what ended them is then visible as a whole.
SELECT job_id FROM fernery.jobs WHERE job_id = ANY ($1::uuid[]) AND ended IS NOT NULL ORDER BY job_id FOR UPDATE;
