-- One bulk act.
SELECT act_id, verb, job_status, stream, code, before_at, actor, expected, counted, state, done, refused, done_walk, walk, trouble,
       created_at, updated_at, ended_at
FROM bulk_acts WHERE act_id = $1;
