-- Stores the output bundle of a workorder; no row if the workorder has one: the first one counts.
INSERT INTO bundles (output_id, work_order_id, objective_id, created_at, document) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (work_order_id) DO NOTHING
RETURNING output_id;
