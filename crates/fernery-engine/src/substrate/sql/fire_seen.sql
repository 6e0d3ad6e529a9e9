INSERT INTO fires (azolla_id, fired_at) VALUES ($1, $2) ON CONFLICT (azolla_id) DO NOTHING RETURNING azolla_id;
