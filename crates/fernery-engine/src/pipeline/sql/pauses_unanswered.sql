-- The last pause of each ticket of an azolla that waits for a person, newest first, below the place ($4, $5), at most $2: it is
-- stopped, or not confirmed, or its patch did not land. What waits for another ticket, or is put off until after $3, waits for
-- nobody now. Of a run that an earlier version judged, its bundle says the outcome.
SELECT p.document, p.pause_key, r.document AS run,
       CASE WHEN r.run_id IS NULL THEN NULL WHEN r.outcome IS NOT NULL THEN r.outcome
            ELSE (SELECT (b.document -> 'metadata') ->> 'outcome' FROM bundles b WHERE b.work_order_id = r.work_order_id)
       END AS outcome
FROM (
    SELECT objective_id, false AS landing FROM objectives
    WHERE azolla_id = $1 AND objective_type = 'TICKET' AND (status = 'BLOCKED' OR unconfirmed)
      AND coalesce(blocked_reason, '') <> 'cancelled'
    UNION ALL
    SELECT o.objective_id, true FROM landings l
        JOIN objectives o ON o.objective_id = l.objective_id
    WHERE l.open AND l.azolla_id = $1 AND l.state = 'OPEN' AND l.record_id IS NOT NULL
      AND o.status = 'DONE' AND NOT o.unconfirmed
) o JOIN pauses p ON p.pause_key = (
    SELECT last.pause_key FROM pauses last WHERE last.objective_id = o.objective_id AND last.azolla_id = $1
    ORDER BY last.created_at DESC, last.pause_key DESC LIMIT 1)
     LEFT JOIN runs r ON p.pause_key LIKE 'run:%' AND r.work_order_id = substr(p.pause_key, 5)
WHERE p.pause_key NOT LIKE 'waits:%' AND (NOT o.landing OR p.pause_key LIKE 'land:%')
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = o.objective_id AND s.until > $3)
  AND (p.created_at, p.pause_key) < ($4, $5)
ORDER BY p.created_at DESC, p.pause_key DESC
LIMIT $2;
