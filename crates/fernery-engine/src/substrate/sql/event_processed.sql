UPDATE events SET processed = true, processed_at = $2, reason = $3, work_order_id = $4
WHERE event_id = $1 AND NOT processed
RETURNING event_id;
