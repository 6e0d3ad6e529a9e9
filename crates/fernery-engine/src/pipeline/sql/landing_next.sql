-- The landing whose turn it is on a branch, with the version of its workorder and until when somebody holds that.
SELECT l.objective_id, l.work_order_id, l.not_before, w.claim_version, c.lease_expires_at
FROM landings l JOIN workorders w ON w.work_order_id = l.work_order_id
     LEFT JOIN claims c ON c.resource_type = 'WORKORDER' AND c.resource_id = l.work_order_id
WHERE l.wanted AND l.azolla_id = $1 AND l.repo_ref = $2 AND l.base_branch = $3
ORDER BY l.wanted_at, l.objective_id LIMIT 1;
