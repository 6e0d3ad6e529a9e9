-- Where the jobs stand that hold these unique keys.
SELECT s.*, k.key
FROM unnest($1::text[]) AS i(key)
CROSS JOIN LATERAL (SELECT key, job_id FROM fernery.unique_keys WHERE key = i.key LIMIT 1) k
CROSS JOIN LATERAL (SELECT * FROM fernery.job_standing WHERE job_id = k.job_id LIMIT 1) s;
