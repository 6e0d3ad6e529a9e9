-- Waiting captures that were tried $3 times, longest waiting first.
SELECT capture_id, raw_content, source_label, created_at FROM captures
WHERE azolla_id = $1 AND status = 'PENDING' AND work_order_id IS NULL AND tries = $3 AND NOT held AND ready_at <= $2
ORDER BY ready_at, capture_id
LIMIT $4 FOR UPDATE;
