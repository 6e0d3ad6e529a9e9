-- The oldest rows of the inbox, up to $1 of them and no more than $2 bytes of payload, one at least.
SELECT inbox_id, job_id, stream, payload, max_attempts, run_at, unique_key, timeout_seconds
FROM (
    SELECT i.*, sum(octet_length(i.payload::text)) OVER (ORDER BY i.inbox_id) - octet_length(i.payload::text) AS bytes_before
    FROM (SELECT * FROM fernery.inbox ORDER BY inbox_id LIMIT $1) i
) i
WHERE bytes_before < $2
ORDER BY inbox_id;
