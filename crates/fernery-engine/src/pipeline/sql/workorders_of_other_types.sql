-- Unfinished workorders for another kind of executor than the azolla has now.
SELECT work_order_id FROM workorders
WHERE azolla_id = $1 AND NOT judged AND status = 'CREATED' AND NOT cancelled AND diazotroph_type <> $2 AND work_order_id > $3
ORDER BY work_order_id
LIMIT $4;
