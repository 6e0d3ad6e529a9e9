-- Stores a workorder of another instance. It is executed and judged: nothing that is imported can be claimed.
INSERT INTO workorders (work_order_id, objective_id, azolla_id, event_id, diazotroph_type, snapshot_id, branch_name, budget_ms,
                        created_at, status, blueprint, spent_ms, executed_at, output_id, judged, gate_tries, cancelled,
                        claim_version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'EXECUTED', $10, $11, $12, $13, true, $14, $15, $16)
ON CONFLICT (work_order_id) DO NOTHING
RETURNING work_order_id;
