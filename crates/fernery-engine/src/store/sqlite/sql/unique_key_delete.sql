-- Frees a key, only for its owner.
DELETE FROM unique_keys WHERE key = ?1 AND job_id = ?2
