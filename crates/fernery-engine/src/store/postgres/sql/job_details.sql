-- One job: where it stands, and what the producer asked for.
SELECT s.*, j.payload, j.unique_key, j.timeout_ms
FROM fernery.job_standing s
JOIN fernery.jobs j ON j.job_id = s.job_id
WHERE s.job_id = $1 AND j.job_id = $1;
