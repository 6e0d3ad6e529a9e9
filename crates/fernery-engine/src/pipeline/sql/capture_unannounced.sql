-- The event of a capture is processed: another event may be emitted for it.
UPDATE captures SET announced = false WHERE capture_id = $1 AND announced
RETURNING capture_id;
