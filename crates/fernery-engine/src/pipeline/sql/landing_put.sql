-- Writes the landing of a run that passed, new or in place of that of an earlier run, whose count of reworks stays. Only under
-- objective_lock.
INSERT INTO landings (objective_id, azolla_id, run_id, work_order_id, repo_ref, base_branch, base_commit, branch, candidate,
                      patch_sha256, state, open, opened_at, updated_at, stacked)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'OPEN', true, $11, $11, $12)
ON CONFLICT (objective_id) DO UPDATE
SET run_id = $3, work_order_id = $4, repo_ref = $5, base_branch = $6, base_commit = $7, branch = $8, candidate = $9,
    patch_sha256 = $10, tip = '', fit = NULL, why = NULL, files = '[]', state = 'OPEN', open = true, wanted = false,
    record_id = NULL, wanted_at = NULL, tries = 0, not_before = NULL, moved_from = NULL, moved_to = NULL, remarks = '[]',
    opened_at = $11, updated_at = $11, stacked = $12
RETURNING objective_id;
