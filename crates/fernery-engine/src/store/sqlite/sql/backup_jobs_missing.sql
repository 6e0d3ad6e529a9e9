-- Jobs of this snapshot that the copy does not have. An id may be used again after a purge: its instant tells.
SELECT j.job_id, j.created_at
FROM main.jobs j
WHERE NOT EXISTS (SELECT 1 FROM copy.jobs c WHERE c.job_id = j.job_id AND c.created_at = j.created_at)
