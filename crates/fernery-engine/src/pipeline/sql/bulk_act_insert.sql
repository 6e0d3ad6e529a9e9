-- Writes a bulk act as it is asked for. One that has this id stays as it is.
INSERT INTO bulk_acts (act_id, verb, job_status, stream, code, before_at, actor, expected, counted, state, walk, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'RUNNING', $10, $11, $11)
ON CONFLICT (act_id) DO NOTHING
RETURNING act_id;
