SELECT s.document FROM workorders w JOIN snapshots s ON s.snapshot_id = w.snapshot_id
WHERE w.objective_id = $1 ORDER BY w.created_at, w.work_order_id;
