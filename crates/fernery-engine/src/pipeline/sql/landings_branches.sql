-- The branches that some patch of an azolla has not landed on. Steps over the index from one branch to the next, however many
-- patches wait for each.
WITH RECURSIVE repos(repo_ref) AS (
    SELECT min(repo_ref) FROM landings WHERE open AND azolla_id = $1
    UNION ALL
    SELECT (SELECT min(l.repo_ref) FROM landings l WHERE l.open AND l.azolla_id = $1 AND l.repo_ref > r.repo_ref)
    FROM repos r WHERE r.repo_ref IS NOT NULL
), branches(repo_ref, base_branch) AS (
    SELECT r.repo_ref,
           (SELECT min(l.base_branch) FROM landings l WHERE l.open AND l.azolla_id = $1 AND l.repo_ref = r.repo_ref)
    FROM repos r WHERE r.repo_ref IS NOT NULL
    UNION ALL
    SELECT b.repo_ref,
           (SELECT min(l.base_branch) FROM landings l
            WHERE l.open AND l.azolla_id = $1 AND l.repo_ref = b.repo_ref AND l.base_branch > b.base_branch)
    FROM branches b WHERE b.base_branch IS NOT NULL
)
SELECT repo_ref, base_branch FROM branches WHERE base_branch IS NOT NULL
ORDER BY repo_ref, base_branch;
