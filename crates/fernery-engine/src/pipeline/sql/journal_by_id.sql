-- One entry of the journal, without its seal.
SELECT entry_id, created_at, actor, act, subject, why FROM journal WHERE entry_id = $1;
