-- One event, at most one workorder: the event's id is unique here (invariant 1).
INSERT INTO workorders (work_order_id, objective_id, azolla_id, event_id, diazotroph_type, snapshot_id, branch_name,
                        budget_ms, created_at, status, blueprint)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'CREATED', $10)
RETURNING work_order_id;
