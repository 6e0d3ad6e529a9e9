-- The oldest claimable jobs of one stream, with what a claim needs of them. The caller removes exactly this range.
SELECT r.seq, r.job_id, r.ready_at, r.claim_version, r.attempt_no, r.failed, r.lost, r.released,
       j.payload, j.max_attempts, j.timeout_ms, j.unique_key
FROM ready r JOIN jobs j ON j.job_id = r.job_id
WHERE r.stream = ?1
ORDER BY r.seq
LIMIT ?2
