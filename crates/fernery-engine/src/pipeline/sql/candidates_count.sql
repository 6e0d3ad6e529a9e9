-- How many candidates wait that are not snoozed beyond $3, counted no further than the limit, and since when the oldest waits.
SELECT (SELECT count(*) FROM (SELECT 1 FROM candidates WHERE azolla_id = $1 AND status = 'WAITING' LIMIT $2) waiting)
     - (SELECT count(*) FROM (SELECT 1 FROM snoozes s JOIN candidates c ON c.candidate_id = s.subject_id
                              WHERE s.kind = 'candidate' AND s.until > $3 AND c.azolla_id = $1 AND c.status = 'WAITING'
                              LIMIT $2) snoozed),
       (SELECT created_at FROM candidates
        WHERE azolla_id = $1 AND status = 'WAITING'
          AND NOT EXISTS (SELECT 1 FROM snoozes s
                          WHERE s.kind = 'candidate' AND s.subject_id = candidate_id AND s.until > $3)
        ORDER BY created_at, candidate_id LIMIT 1);
