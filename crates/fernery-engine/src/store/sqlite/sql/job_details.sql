-- What the producer asked for, beside where it stands.
SELECT payload, unique_key, timeout_ms FROM jobs WHERE job_id = ?1
