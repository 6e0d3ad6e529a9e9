-- The newest instant that was kept, and the one that is current.
SELECT newest_at, boot, up_ms, fernery.fernery_now() AS now_at FROM fernery.clock;
