-- Deadlines that have passed and were told, of objectives that azolla $1 still watches, the last first, at most $2.
SELECT source_azolla_id, objective_id, deadline FROM deadlines
WHERE azolla_id = $1 AND told AND deadline IS NOT NULL
ORDER BY deadline DESC, objective_id
LIMIT $2;
