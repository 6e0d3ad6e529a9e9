-- The open blockers of an objective that wait for another one, with where that one stands, in the order of their ids.
SELECT d.blocker_id, d.after_id, o.status, o.blocked_reason, o.unconfirmed, l.state
FROM dependencies d JOIN blockers b ON b.objective_id = d.objective_id AND b.blocker_id = d.blocker_id
     JOIN objectives o ON o.objective_id = d.after_id LEFT JOIN landings l ON l.objective_id = d.after_id
WHERE d.objective_id = $1 AND NOT b.resolved
ORDER BY d.blocker_id;
