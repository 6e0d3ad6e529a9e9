-- The oldest rows of the inbox, up to $1 of them and no more than $2 bytes of payload, one at least. No payload is read
-- that is not returned.
SELECT i.inbox_id, i.job_id, i.stream, i.payload, i.max_attempts, i.run_at, i.unique_key, i.timeout_seconds
FROM (
    SELECT inbox_id, sum(payload_bytes) OVER (ORDER BY inbox_id) - payload_bytes AS bytes_before
    FROM (SELECT inbox_id, payload_bytes FROM fernery.inbox ORDER BY inbox_id LIMIT $1) front
) wanted
CROSS JOIN LATERAL (SELECT * FROM fernery.inbox WHERE inbox_id = wanted.inbox_id LIMIT 1) i
WHERE bytes_before < $2
ORDER BY i.inbox_id;
