-- A page of pauses of all azollas, newest first, below the place ($1, $2); that of a run with its record and its outcome.
SELECT p.document, p.pause_key, r.document AS run, (b.document -> 'metadata') ->> 'outcome' AS outcome
FROM pauses p LEFT JOIN runs r ON p.pause_key LIKE 'run:%' AND r.work_order_id = substr(p.pause_key, 5)
     LEFT JOIN bundles b ON b.work_order_id = r.work_order_id
WHERE (p.created_at, p.pause_key) < ($1, $2)
ORDER BY p.created_at DESC, p.pause_key DESC
LIMIT $3;
