-- A page of pauses of all azollas, newest first, below the place ($1, $2); that of a run with its record and its outcome. Of a
-- run that an earlier version judged, its bundle says the outcome.
SELECT p.document, p.pause_key, r.document AS run,
       CASE WHEN r.run_id IS NULL THEN NULL WHEN r.outcome IS NOT NULL THEN r.outcome
            ELSE (SELECT (b.document -> 'metadata') ->> 'outcome' FROM bundles b WHERE b.work_order_id = r.work_order_id)
       END AS outcome
FROM pauses p LEFT JOIN runs r ON p.pause_key LIKE 'run:%' AND r.work_order_id = substr(p.pause_key, 5)
WHERE (p.created_at, p.pause_key) < ($1, $2)
ORDER BY p.created_at DESC, p.pause_key DESC
LIMIT $3;
