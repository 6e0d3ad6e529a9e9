-- The capture that has waited longest, of those that may be looked through.
SELECT tries FROM captures
WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL AND NOT held AND ready_at <= $2
ORDER BY ready_at, capture_id
LIMIT 1;
