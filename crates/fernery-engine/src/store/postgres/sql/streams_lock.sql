-- Whoever opens streams counts them first: one at a time, in all processes.
SELECT pg_advisory_xact_lock(hashtextextended('fernery.streams', 0));
