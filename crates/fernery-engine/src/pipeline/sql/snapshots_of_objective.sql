-- What the executors of one objective were told, in the order its workorders were made.
SELECT s.document FROM workorders w JOIN snapshots s ON s.snapshot_id = w.snapshot_id
WHERE w.objective_id = $1 ORDER BY w.created_at, w.work_order_id;
