-- The first branch after this one that some patch of an azolla has not landed on. One step of the index, however many there are.
SELECT repo_ref, base_branch FROM landings WHERE open AND azolla_id = $1 AND (repo_ref, base_branch) > ($2, $3)
ORDER BY repo_ref, base_branch LIMIT 1;
