-- The open blockers of the objectives that objectives_open reads.
SELECT b.blocker_id, b.kind, b.description, b.resolved, b.objective_id
FROM (SELECT objective_id
      FROM objectives
      WHERE azolla_id = $1 AND objective_type = 'TICKET' AND (status <> 'DONE' OR unconfirmed) AND coalesce(blocked_reason, '') <> 'cancelled'
        AND CASE WHEN created_at > $3 AND created_at < $4 AND updated_at < $5 THEN true ELSE false END
        AND ($6 = '' OR $6 LIKE '%,' || status || ',%') AND ($7 = '' OR $7 LIKE '%,' || urgency || ',%')
        AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = objective_id AND s.until > $8)
      ORDER BY importance, urgency, created_at, objective_id
      LIMIT $2) o
JOIN blockers b ON b.objective_id = o.objective_id
ORDER BY b.objective_id, b.place;
