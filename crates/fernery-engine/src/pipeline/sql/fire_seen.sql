-- Starts to count for a schedule that is new or has changed: times before $2 are not made up for.
INSERT INTO fires (azolla_id, fired_at, schedule) VALUES ($1, $2, $3)
ON CONFLICT (azolla_id) DO UPDATE SET fired_at = $2, schedule = $3
RETURNING azolla_id;
