-- When the next scheduled job is due.
SELECT min(due_at) FROM fernery.scheduled;
