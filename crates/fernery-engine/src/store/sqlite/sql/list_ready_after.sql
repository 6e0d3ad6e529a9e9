-- Claimable jobs in the order of their streams and places.
SELECT job_id, stream, seq FROM ready WHERE (stream, seq) > (?1, ?2) ORDER BY stream, seq LIMIT ?3
