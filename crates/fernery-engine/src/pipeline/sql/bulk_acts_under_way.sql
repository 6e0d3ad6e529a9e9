-- How many bulk acts are under way; no more than $1 are counted.
SELECT count(*) AS acts FROM (SELECT act_id FROM bulk_acts WHERE state = 'RUNNING' LIMIT $1) a;
