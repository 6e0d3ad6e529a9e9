-- Finished tickets of an azolla whose patch conflicts with its branch, or did not land, the most important first, at most $2; none
-- that is snoozed beyond $3.
SELECT o.objective_id, o.azolla_id, o.title, o.acceptance_criteria, o.objective_type, o.status, o.importance, o.urgency,
       o.blocked_reason, o.metadata, o.created_at, o.updated_at, o.entry, o.approval, o.unconfirmed, o.failures, o.attempts,
       o.wall_ms, o.tokens, o.cost_usd_micros, l.state, l.fit, l.why
FROM landings l JOIN objectives o ON o.objective_id = l.objective_id
WHERE l.open AND l.azolla_id = $1 AND l.state = 'OPEN' AND (l.fit = 'CONFLICTS' OR l.why IS NOT NULL) AND o.status = 'DONE'
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = o.objective_id AND s.until > $3)
ORDER BY o.importance, o.urgency, o.created_at, o.objective_id
LIMIT $2;
