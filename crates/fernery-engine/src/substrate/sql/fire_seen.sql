INSERT INTO fires (azolla_id, fired_at, schedule) VALUES ($1, $2, $3)
ON CONFLICT (azolla_id) DO UPDATE SET fired_at = $2, schedule = $3
RETURNING azolla_id;
