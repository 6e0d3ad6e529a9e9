UPDATE captures SET announced = true, entry = entry + 1 WHERE capture_id = $1 AND entry = $2 AND NOT announced
RETURNING capture_id;
