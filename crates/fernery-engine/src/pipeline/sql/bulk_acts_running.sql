-- Whether a bulk act is under way.
SELECT act_id FROM bulk_acts WHERE state = 'RUNNING' LIMIT 1;
