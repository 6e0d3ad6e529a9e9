-- How many patches of this branch that have not landed are newer than this one, counted up to $6.
SELECT count(*) FROM (
    SELECT 1 FROM landings WHERE open AND azolla_id = $1 AND repo_ref = $2 AND base_branch = $3
        AND (opened_at, objective_id) > ($4, $5)
    LIMIT $6) AS newer;
