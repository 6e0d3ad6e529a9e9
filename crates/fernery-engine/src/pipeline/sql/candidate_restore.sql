-- Takes back that a candidate was discarded; no row if it was not.
UPDATE candidates SET status = 'WAITING', updated_at = $2 WHERE candidate_id = $1 AND status = 'DISCARDED'
RETURNING candidate_id;
