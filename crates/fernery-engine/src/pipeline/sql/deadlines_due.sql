-- Watched objectives that are overdue and have no pause for it yet, longest overdue first.
SELECT source_azolla_id, objective_id, deadline, document, server FROM deadlines
WHERE azolla_id = $1 AND NOT told AND deadline <= $2
ORDER BY deadline, objective_id
LIMIT $3;
