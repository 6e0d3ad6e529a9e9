-- One workorder, one run record (invariant 2). Outcome and size are those of its bundle, so that readers of pauses and of the time
-- that a review takes need not read that.
INSERT INTO runs (run_id, work_order_id, objective_id, azolla_id, created_at, document, evidence, outcome, files, insertions,
                  deletions)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (work_order_id) DO NOTHING
RETURNING run_id;
