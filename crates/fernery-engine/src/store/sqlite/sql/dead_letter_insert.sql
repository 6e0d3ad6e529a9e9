-- A job is given up.
INSERT INTO dead_letters (job_id, stream, buried_at, reason, code) VALUES (?1, ?2, ?3, ?4, ?5)
