-- Forgets up to $2 bulk acts that ended before $1.
DELETE FROM bulk_acts WHERE act_id IN (
    SELECT act_id FROM bulk_acts WHERE ended_at < $1 AND state <> 'RUNNING' ORDER BY ended_at LIMIT $2
)
RETURNING act_id;
