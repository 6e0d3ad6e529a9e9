-- The landing of an objective, without a lock.
SELECT objective_id, azolla_id, run_id, work_order_id, repo_ref, base_branch, base_commit, branch, candidate, patch_sha256, tip,
       fit, why, files, state, record_id, wanted_at, tries, not_before, moved_from, moved_to, remarks, reworks, opened_at,
       stacked
FROM landings WHERE objective_id = $1;
