-- The output bundles of one objective, in the order its workorders were made.
SELECT b.document FROM workorders w JOIN bundles b ON b.work_order_id = w.work_order_id
WHERE w.objective_id = $1 ORDER BY w.created_at, w.work_order_id;
