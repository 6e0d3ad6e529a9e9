-- The pauses of an objective by its own azolla; that of a run with its record and its outcome. Other azollas may have pauses about
-- it, or about an objective of the same id on another server. Of a run that an earlier version judged, its bundle says the outcome.
SELECT p.document, p.pause_key, r.document AS run,
       CASE WHEN r.run_id IS NULL THEN NULL WHEN r.outcome IS NOT NULL THEN r.outcome
            ELSE (SELECT (b.document -> 'metadata') ->> 'outcome' FROM bundles b WHERE b.work_order_id = r.work_order_id)
       END AS outcome
FROM pauses p JOIN objectives o ON o.objective_id = p.objective_id AND o.azolla_id = p.azolla_id
     LEFT JOIN runs r ON p.pause_key LIKE 'run:%' AND r.work_order_id = substr(p.pause_key, 5)
WHERE p.objective_id = $1
ORDER BY p.created_at, p.pause_key;
