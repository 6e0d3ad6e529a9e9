-- One workorder, one run record (invariant 2). The outcome is that of its bundle, so that readers of pauses need not read that.
INSERT INTO runs (run_id, work_order_id, objective_id, azolla_id, created_at, document, evidence, outcome)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (work_order_id) DO NOTHING
RETURNING run_id;
