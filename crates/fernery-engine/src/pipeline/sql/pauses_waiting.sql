-- The last pause of each objective of an azolla that waits for a person, the most important first.
-- A list of words has the form ,A,B, and an empty list excludes nothing.
SELECT p.document FROM objectives o JOIN pauses p ON p.pause_key = (
    SELECT last.pause_key FROM pauses last WHERE last.objective_id = o.objective_id AND last.azolla_id = $1
    ORDER BY last.created_at DESC, last.pause_key DESC LIMIT 1)
WHERE o.azolla_id = $1 AND o.objective_type = 'TICKET'
  AND coalesce(o.blocked_reason, '') <> 'cancelled'
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = o.objective_id AND s.until > $6)
  AND (o.status = 'BLOCKED' OR o.unconfirmed)
  AND p.created_at > $3 AND p.created_at < $4 AND ($5 = '' OR $5 LIKE '%,' || (p.document ->> 'reason') || ',%')
ORDER BY o.importance, o.urgency, o.created_at, o.objective_id
LIMIT $2;
