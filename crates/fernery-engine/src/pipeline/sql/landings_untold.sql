-- Landings that nobody has asked for and that do not say $4, the reason why their branch cannot be looked at, of the newest $5 of
-- the branch. None that may have moved it, and none with a reason of its own (one that is not like $7): what those say must not
-- be lost.
SELECT objective_id, azolla_id, run_id, work_order_id, repo_ref, base_branch, base_commit, branch, candidate, patch_sha256, tip,
       fit, why, files, state, record_id, wanted_at, tries, not_before, moved_from, moved_to, remarks, reworks, opened_at,
       stacked
FROM (SELECT * FROM landings WHERE open AND azolla_id = $1 AND repo_ref = $2 AND base_branch = $3
      ORDER BY opened_at DESC, objective_id DESC LIMIT $5) AS newest
WHERE state = 'OPEN' AND moved_to IS NULL AND (why IS NULL OR why <> $4 AND why LIKE $7)
ORDER BY opened_at DESC, objective_id DESC LIMIT $6;
