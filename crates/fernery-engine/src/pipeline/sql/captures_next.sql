-- How often the capture was tried that has waited longest for triage; no row if none may be taken now.
SELECT tries FROM captures
WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL AND NOT held AND ready_at <= $2
ORDER BY ready_at, capture_id
LIMIT 1;
