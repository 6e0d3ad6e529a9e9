SELECT entry_id, created_at, actor, act, subject, why FROM journal WHERE entry_id = $1;
