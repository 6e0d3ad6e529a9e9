-- The workorder of an objective that has no verdict yet; there is at most one.
SELECT work_order_id, objective_id, diazotroph_type, snapshot_id, branch_name, budget_ms, created_at, status,
       azolla_id, event_id, blueprint, spent_ms, executed_at, output_id, judged, gate_tries, cancelled, claim_version
FROM workorders WHERE objective_id = $1 AND NOT judged;
