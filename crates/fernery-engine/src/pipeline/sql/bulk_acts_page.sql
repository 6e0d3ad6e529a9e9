-- A page of bulk acts, newest first, below the place ($1, $2).
SELECT act_id, verb, job_status, stream, code, before_at, actor, expected, counted, state, done, refused, done_walk, walk, trouble,
       created_at, updated_at, ended_at
FROM bulk_acts WHERE (created_at, act_id) < ($1, $2)
ORDER BY created_at DESC, act_id DESC
LIMIT $3;
