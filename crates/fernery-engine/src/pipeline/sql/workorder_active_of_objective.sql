-- The one that has no verdict yet: an objective has one at most.
SELECT work_order_id, objective_id, diazotroph_type, snapshot_id, branch_name, budget_ms, created_at, status,
       azolla_id, event_id, blueprint, spent_ms, executed_at, output_id, judged, gate_tries, cancelled, claim_version
FROM workorders WHERE objective_id = $1 AND NOT judged;
