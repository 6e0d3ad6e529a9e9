SELECT objective_id FROM objectives WHERE objective_type = 'TICKET' ORDER BY created_at LIMIT 1;
