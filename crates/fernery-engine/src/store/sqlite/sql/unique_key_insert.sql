-- Takes a key. The primary key refuses a second owner.
INSERT INTO unique_keys (key, job_id) VALUES (?1, ?2)
