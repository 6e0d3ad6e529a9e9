-- One job and where it stands: leased, ready, scheduled or ended.
SELECT j.job_id, j.stream, j.max_attempts, j.created_at, coalesce(s.due_at, j.run_at), j.producer,
       l.resource_id IS NOT NULL, r.job_id IS NOT NULL OR s.job_id IS NOT NULL, j.ended, j.ended_at,
       a.outcome, a.finished_at
FROM jobs j
LEFT JOIN leases l ON l.resource_id = j.job_id
LEFT JOIN ready r ON r.stream = j.stream AND r.seq = j.seq AND r.job_id = j.job_id
LEFT JOIN scheduled s ON s.job_id = j.job_id
LEFT JOIN attempts a ON a.job_id = j.job_id
     AND a.attempt_no = (SELECT max(attempt_no) FROM attempts WHERE job_id = j.job_id)
WHERE j.job_id = ?1
