SELECT blocker_id, kind, description, resolved FROM blockers WHERE objective_id = $1 ORDER BY place;
