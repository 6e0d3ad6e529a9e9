-- After a restore: raises versions above any that was given out since the backup. Until it is executed, a workorder's version
-- is that of its job.
UPDATE workorders SET claim_version = claim_version + $1 WHERE NOT judged AND status = 'EXECUTED'
RETURNING work_order_id;
