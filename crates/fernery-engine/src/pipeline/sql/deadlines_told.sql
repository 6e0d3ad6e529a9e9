-- Deadlines that have passed and were told, of objectives that azolla $1 still watches and nobody has put off until after $3, the last
-- first, at most $2.
SELECT source_azolla_id, objective_id, deadline FROM deadlines
WHERE azolla_id = $1 AND told AND deadline IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM snoozes s WHERE s.kind = 'objective' AND s.subject_id = deadlines.objective_id AND s.until > $3)
ORDER BY deadline DESC, objective_id
LIMIT $2;
