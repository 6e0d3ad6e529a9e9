-- One workorder, locked until the transaction ends.
SELECT work_order_id, objective_id, diazotroph_type, snapshot_id, branch_name, budget_ms, created_at, status,
       azolla_id, event_id, blueprint, spent_ms, executed_at, output_id, judged, gate_tries, cancelled, claim_version
FROM workorders WHERE work_order_id = $1 FOR UPDATE;
