SELECT fired_at, schedule FROM fires WHERE azolla_id = $1;
