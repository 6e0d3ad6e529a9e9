-- Captures that wait and that no unprocessed event tells of, longest waiting first.
SELECT capture_id, entry FROM captures
WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL AND NOT announced AND ready_at <= $2
ORDER BY ready_at, capture_id
LIMIT $3;
