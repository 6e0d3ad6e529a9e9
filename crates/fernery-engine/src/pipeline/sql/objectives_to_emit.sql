-- Objectives that entered TODO and have no event for it yet, longest waiting first.
SELECT objective_id, entry FROM objectives
WHERE azolla_id = $1 AND status = 'TODO' AND emitted < entry
ORDER BY updated_at, objective_id
LIMIT $2;
