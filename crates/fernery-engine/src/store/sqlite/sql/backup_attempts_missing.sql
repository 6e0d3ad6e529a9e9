-- Closed attempts of this snapshot that the copy does not have.
SELECT a.job_id, a.attempt_no, a.attempt_id
FROM main.attempts a
WHERE NOT EXISTS (
    SELECT 1 FROM copy.attempts c
    WHERE c.job_id = a.job_id AND c.attempt_no = a.attempt_no AND c.attempt_id = a.attempt_id)
