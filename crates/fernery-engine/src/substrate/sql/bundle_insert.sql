INSERT INTO bundles (output_id, work_order_id, objective_id, created_at, document) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (work_order_id) DO NOTHING
RETURNING output_id;
