-- Which of these jobs there are.
SELECT job_id FROM fernery.jobs WHERE job_id = ANY ($1::uuid[]);
