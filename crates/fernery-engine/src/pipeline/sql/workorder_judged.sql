-- Marks a workorder as judged; no row if it was judged before. Whoever read it unjudged and takes it only now finds another
-- version.
UPDATE workorders SET judged = true, claim_version = claim_version + 1 WHERE work_order_id = $1 AND NOT judged
RETURNING work_order_id;
