-- Landings that were not tried on this tip, of the newest $5 of their branch: what is older costs nothing.
SELECT objective_id, azolla_id, run_id, work_order_id, repo_ref, base_branch, base_commit, branch, candidate, patch_sha256, tip,
       fit, why, files, state, record_id, wanted_at, tries, not_before, moved_from, moved_to, remarks, reworks, opened_at,
       stacked
FROM (SELECT * FROM landings WHERE open AND azolla_id = $1 AND repo_ref = $2 AND base_branch = $3
      ORDER BY opened_at DESC, objective_id DESC LIMIT $5) AS newest
WHERE tip <> $4
ORDER BY opened_at DESC, objective_id DESC LIMIT $6;
