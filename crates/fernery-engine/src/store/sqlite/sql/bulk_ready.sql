-- Claimable jobs in the order of their streams and places, after (?1, ?2), up to the stream ?3, and when they were enqueued.
SELECT r.job_id, r.stream, r.seq, j.created_at AS at
FROM ready r CROSS JOIN jobs j ON j.job_id = r.job_id
WHERE (r.stream, r.seq) > (?1, ?2) AND r.stream <= ?3
ORDER BY r.stream, r.seq
LIMIT ?4
