SELECT objective_id FROM objectives ORDER BY created_at LIMIT 1;
