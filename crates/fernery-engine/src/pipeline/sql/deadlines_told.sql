-- The pauses of azolla $1 about objectives that are overdue and that it still watches, newest first, below the place ($4, $5), at
-- most $2. Not of one that is put off until after $3, nor of one with a pause of its own that waits for a person: the conditions
-- are those of pauses_unanswered.
SELECT p.document, p.pause_key, NULL AS run, NULL AS outcome
FROM deadlines d JOIN pauses p ON p.pause_key = (
    SELECT last.pause_key FROM pauses last
    WHERE last.objective_id = d.objective_id AND last.azolla_id = $1
      AND last.pause_key LIKE 'overdue:' || $1 || ':' || d.source_azolla_id || '/' || d.objective_id || ':%'
    ORDER BY last.created_at DESC, last.pause_key DESC LIMIT 1)
WHERE d.azolla_id = $1 AND d.told AND d.deadline IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = d.objective_id AND s.until > $3)
  AND NOT EXISTS (
    SELECT 1 FROM objectives o LEFT JOIN landings l ON l.objective_id = o.objective_id
        JOIN pauses own ON own.pause_key = (
            SELECT last.pause_key FROM pauses last WHERE last.objective_id = o.objective_id AND last.azolla_id = o.azolla_id
            ORDER BY last.created_at DESC, last.pause_key DESC LIMIT 1)
    WHERE o.objective_id = d.objective_id AND o.azolla_id = d.source_azolla_id AND o.objective_type = 'TICKET'
      AND own.pause_key NOT LIKE 'waits:%'
      AND ((o.status = 'BLOCKED' OR o.unconfirmed) AND coalesce(o.blocked_reason, '') <> 'cancelled'
           OR o.status = 'DONE' AND l.open AND l.state = 'OPEN' AND l.record_id IS NOT NULL AND own.pause_key LIKE 'land:%'))
  AND (p.created_at, p.pause_key) < ($4, $5)
ORDER BY p.created_at DESC, p.pause_key DESC
LIMIT $2;
