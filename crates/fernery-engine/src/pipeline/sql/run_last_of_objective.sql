-- The run of the last entry into TODO that has one. Ordered by entry and not by time: a clock may be set back.
SELECT r.document, r.evidence
FROM runs r JOIN workorders w ON w.work_order_id = r.work_order_id JOIN events e ON e.event_id = w.event_id
WHERE r.objective_id = $1
ORDER BY e.entry DESC
LIMIT 1;
