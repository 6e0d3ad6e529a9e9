-- Stores the notice of a pause, if its azolla sends notices of pauses.
INSERT INTO notices (notice_id, azolla_id, kind, created_at)
SELECT p.pause_key, p.azolla_id, 'pause_state', p.created_at
FROM pauses p JOIN azollas a ON a.azolla_id = p.azolla_id
WHERE p.pause_key = $1 AND a.tells LIKE '%pause_state%'
ON CONFLICT (notice_id) DO NOTHING
RETURNING notice_id;
