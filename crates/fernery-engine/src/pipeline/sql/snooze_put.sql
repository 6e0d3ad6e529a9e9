-- Puts something out of sight until $3.
INSERT INTO snoozes (kind, subject_id, until) VALUES ($1, $2, $3)
ON CONFLICT (kind, subject_id) DO UPDATE SET until = $3
RETURNING subject_id;
