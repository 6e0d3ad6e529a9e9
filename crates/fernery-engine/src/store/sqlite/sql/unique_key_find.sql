-- Which unfinished job has this key.
SELECT job_id FROM unique_keys WHERE key = ?1
