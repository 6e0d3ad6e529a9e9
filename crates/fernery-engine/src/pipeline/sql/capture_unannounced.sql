-- Its event is processed: whatever becomes of it, another one may be emitted.
UPDATE captures SET announced = false WHERE capture_id = $1 AND announced
RETURNING capture_id;
