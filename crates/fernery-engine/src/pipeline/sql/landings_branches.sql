-- The branches that some patch of an azolla has not landed on.
SELECT DISTINCT repo_ref, base_branch FROM landings WHERE open AND azolla_id = $1
ORDER BY repo_ref, base_branch;
