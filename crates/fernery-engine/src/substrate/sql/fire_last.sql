SELECT fired_at FROM fires WHERE azolla_id = $1;
