-- How many tickets of an azolla ($1) wait for approval and how many candidates of its inbox for a decision, each without what is put
-- off beyond $3 and counted no further than $2.
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM objectives o
            WHERE o.azolla_id = $1 AND o.status = 'NEW' AND o.objective_type = 'TICKET'
              AND coalesce(o.blocked_reason, '') <> 'cancelled'
              AND NOT EXISTS (SELECT 1 FROM snoozes s
                              WHERE s.kind = 'objective' AND s.subject_id = o.objective_id AND s.until > $3)
            LIMIT $2) approvals) AS approvals,
       (SELECT count(*) FROM (
            SELECT 1 FROM candidates c
            WHERE c.azolla_id = $1 AND c.status = 'WAITING'
              AND NOT EXISTS (SELECT 1 FROM snoozes s
                              WHERE s.kind = 'candidate' AND s.subject_id = c.candidate_id AND s.until > $3)
            LIMIT $2) candidates) AS candidates;
