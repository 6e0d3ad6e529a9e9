-- Closes an event with its reason and its workorder, if it led to one; no row if it was processed before.
UPDATE events SET processed = true, processed_at = $2, reason = $3, work_order_id = $4
WHERE event_id = $1 AND NOT processed
RETURNING event_id;
