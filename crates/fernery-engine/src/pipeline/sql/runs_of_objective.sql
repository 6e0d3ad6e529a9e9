-- In the order of the entries into TODO that they came of: those are counted, and a clock may be set back.
SELECT r.document, r.evidence
FROM runs r JOIN workorders w ON w.work_order_id = r.work_order_id JOIN events e ON e.event_id = w.event_id
WHERE r.objective_id = $1
ORDER BY e.entry, r.created_at, r.run_id;
