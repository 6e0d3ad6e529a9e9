-- Marks waiting captures that have no unprocessed event as announced, longest waiting first; answers them.
UPDATE captures SET announced = true, entry = entry + 1
WHERE NOT announced AND status = 'PENDING' AND work_order_id IS NULL AND capture_id IN (
    SELECT capture_id FROM captures
    WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL AND NOT announced AND NOT held AND ready_at <= $2
    ORDER BY ready_at, capture_id
    LIMIT $3)
RETURNING capture_id, entry;
