-- The blockers of a page of tickets of one azolla and status.
SELECT b.blocker_id, b.kind, b.description, b.resolved, b.objective_id
FROM (SELECT objective_id FROM objectives
      WHERE azolla_id = $4 AND status = $5 AND objective_type = 'TICKET' AND (created_at, objective_id) < ($1, $2)
      ORDER BY created_at DESC, objective_id DESC
      LIMIT $3) o
JOIN blockers b ON b.objective_id = o.objective_id
ORDER BY b.objective_id, b.place;
