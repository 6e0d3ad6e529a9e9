-- Opens an attempt. The primary key refuses a second lease on the same job.
INSERT INTO leases (resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at,
                    expires_at, timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, unique_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
