-- All blockers of one objective, resolved ones too, in the order they were added.
SELECT blocker_id, kind, description, resolved FROM blockers WHERE objective_id = $1 ORDER BY place;
