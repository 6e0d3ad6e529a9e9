-- The bulk act that has waited longest for its next step. One that another process has in hand is left to it.
SELECT act_id, verb, job_status, stream, code, before_at, actor, expected, counted, state, done, refused, done_walk, walk, trouble,
       created_at, updated_at, ended_at
FROM bulk_acts WHERE state = 'RUNNING' ORDER BY updated_at, act_id LIMIT 1 FOR UPDATE SKIP LOCKED;
