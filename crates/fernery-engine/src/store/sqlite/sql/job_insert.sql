-- Stores what the producer asked for. Fails if the id is taken: the caller has looked.
INSERT INTO jobs (job_id, stream, payload, max_attempts, timeout_ms, unique_key, producer, content_hash,
                  created_at, run_at, seq, claim_version)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)
