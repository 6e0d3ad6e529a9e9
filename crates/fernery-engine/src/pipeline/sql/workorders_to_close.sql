-- As workorders_to_judge, for cancelled workorders.
SELECT w.work_order_id, w.claim_version
FROM workorders w LEFT JOIN claims c ON c.resource_type = 'WORKORDER' AND c.resource_id = w.work_order_id
WHERE w.azolla_id = $1 AND NOT w.judged AND w.status = 'EXECUTED' AND w.cancelled
  AND (c.resource_id IS NULL OR c.lease_expires_at <= $2)
ORDER BY w.executed_at, w.work_order_id
LIMIT $3;
