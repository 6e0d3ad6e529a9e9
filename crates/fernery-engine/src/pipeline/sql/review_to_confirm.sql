-- How large the patches are that wait for confirmation in an azolla ($1), a row for each ticket that is not put off beyond $3, at
-- most $2. Read off what stands beside the runs: no patch is read.
SELECT r.files, r.insertions, r.deletions
FROM (
    SELECT o.objective_id FROM objectives o
    WHERE o.azolla_id = $1 AND o.unconfirmed
      AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = o.objective_id AND s.until > $3)
    LIMIT $2
) o LEFT JOIN runs r ON r.run_id = (
    SELECT last.run_id
    FROM runs last JOIN workorders w ON w.work_order_id = last.work_order_id JOIN events e ON e.event_id = w.event_id
    WHERE last.objective_id = o.objective_id
    ORDER BY e.entry DESC
    LIMIT 1);
