-- The oldest ticket, if this instance has any: then nothing can be imported.
SELECT objective_id FROM objectives WHERE objective_type = 'TICKET' ORDER BY created_at LIMIT 1;
