-- The newest instant that was kept, and the one that is current.
SELECT newest_at, boot, up_ms, fernery.fernery_now() FROM fernery.clock;
