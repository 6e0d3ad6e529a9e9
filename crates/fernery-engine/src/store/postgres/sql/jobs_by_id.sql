-- Where these jobs stand, and what tells their content apart.
SELECT s.*, j.content_hash
FROM unnest($1::uuid[]) AS i(job_id)
CROSS JOIN LATERAL (SELECT job_id, content_hash FROM fernery.jobs WHERE job_id = i.job_id LIMIT 1) j
CROSS JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE job_id = j.job_id LIMIT 1) s;
